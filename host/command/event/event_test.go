package event_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/event"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// list is a log in memory.
type list struct{ events []sentinels.Event }

func (l *list) Emit(_ context.Context, e sentinels.Event) (sentinels.Event, error) {
	for _, before := range l.events {
		if e.ID == before.ID && e.Source == before.Source {
			return before, nil
		}
	}
	if e.ID == "" {
		e.ID = fmt.Sprintf("made-%d", len(l.events))
	}
	e.Time = time.Unix(int64(len(l.events)), 0).UTC()
	l.events = append(l.events, e)
	return e, nil
}

func (l *list) NewestEvents(pattern string, limit int, bytes int64) ([]sentinels.Event, bool, error) {
	var found []sentinels.Event
	for _, e := range l.events {
		if sentinels.MatchEvent(pattern, e.Name) {
			found = append(found, e)
		}
	}
	found = found[max(0, len(found)-limit):]
	more := bytes > 0 && len(found) > 1 // as if each had more
	if more {
		found = found[len(found)-1:]
	}
	return found, more, nil
}

func open(t *testing.T, opt event.Options) func(call command.Call, name, params string) (json.RawMessage, error) {
	t.Helper()
	r, err := command.NewRegistry(event.Commands(opt)...)
	if err != nil {
		t.Fatal(err)
	}
	return func(call command.Call, name, params string) (json.RawMessage, error) {
		call.Command, call.Params = name, json.RawMessage(params)
		return r.Call(t.Context(), &call)
	}
}

func TestEmitAndTail(t *testing.T) {
	log := &list{}
	do := open(t, event.Options{Log: log})
	run := command.Call{By: command.ByStep, Run: "r", Sentinel: "deploy", Key: "k"}
	first, err := do(run, "events/emit", `{"event":"git:push","data":{"branch":"main"}}`)
	if err != nil {
		t.Fatal(err)
	}
	again, err := do(run, "events/emit", `{"event":"git:push","data":{"branch":"main"}}`)
	if err != nil || string(again) != string(first) {
		t.Errorf("second attempt gave %s, %v; the first %s", again, err, first)
	}
	for range 2 { // a person's calls have no key: each is an event
		if _, err := do(command.Call{By: command.ByUser}, "events/emit", `{"event":"sentinel:deployed"}`); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for _, e := range log.events {
		names = append(names, fmt.Sprintf("%s %s %d %s", e.Source, e.Name, e.Hops, e.Data))
	}
	want := []string{`sentinel/deploy git:push 1 {"branch":"main"}`, "user sentinel:deployed 0 ", "user sentinel:deployed 0 "}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	tests := []struct {
		params string
		count  int
	}{{`{}`, 3}, {`{"pattern":"git:*"}`, 1}, {`{"pattern":"sentinel:**"}`, 2}, {`{"limit":1}`, 1}, {`{"pattern":"none"}`, 0}}
	for _, tt := range tests {
		text, err := do(command.Call{}, "events/tail", tt.params)
		var out struct{ Events []sentinels.Event }
		if err == nil {
			err = json.Unmarshal(text, &out)
		}
		if err != nil || len(out.Events) != tt.count || out.Events == nil {
			t.Errorf("tail %s = %s, %v", tt.params, text, err)
		}
	}
}

// The runs that led to an event are known in the event.
func TestChain(t *testing.T) {
	tests := map[string]struct {
		opt  event.Options
		call command.Call
		hops int
		path []string
	}{
		"a run of a chain": {event.Options{Chain: chainOf(5, "a", "b")}, command.Call{Run: "r", Sentinel: "b"}, 5, []string{"a", "b"}},
		"an unknown run":   {event.Options{Chain: chainOf(0)}, command.Call{Run: "r", Sentinel: "b"}, 1, []string{"b"}},
		"no chains":        {event.Options{}, command.Call{Run: "r", Sentinel: "b"}, 1, []string{"b"}},
		"a person":         {event.Options{Chain: chainOf(5, "a")}, command.Call{}, 0, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			log := &list{}
			tt.opt.Log = log
			if _, err := open(t, tt.opt)(tt.call, "events/emit", `{"event":"a"}`); err != nil {
				t.Fatal(err)
			}
			if e := log.events[0]; e.Hops != tt.hops || !cmp.Equal(e.Path, tt.path) {
				t.Errorf("%d hops by %q, want %d by %q", e.Hops, e.Path, tt.hops, tt.path)
			}
		})
	}
}

func chainOf(hops int, path ...string) func(sentinels.RunID) (int, []string) {
	return func(sentinels.RunID) (int, []string) { return hops, path }
}

func TestRefusals(t *testing.T) {
	log := &list{}
	do := open(t, event.Options{Log: log})
	tests := []struct {
		command, params string
		code            abi.Code
	}{
		{"events/emit", `{"event":""}`, abi.BadFields},
		{"events/emit", `{"event":"git:*"}`, abi.BadFields},
		{"events/emit", `{"event":"a::b"}`, abi.BadFields},
		{"events/emit", `{"event":"a b"}`, abi.BadFields},
		{"events/emit", `{"event":"` + strings.Repeat("x", 129) + `"}`, abi.BadFields},
		{"events/tail", `{"pattern":"a:**:b"}`, abi.BadFields},
		{"events/tail", `{"pattern":"` + strings.Repeat("x", 129) + `"}`, abi.BadFields},
		{"events/tail", `{"limit":0}`, abi.BadFields},
	}
	for _, tt := range tests {
		if got, err := do(command.Call{}, tt.command, tt.params); abi.CodeOf(err) != tt.code {
			t.Errorf("%s %.60s = %s, %v", tt.command, tt.params, got, err)
		}
	}
	// A model needs the family in its tools.
	call := command.Call{By: command.ByModel, Tools: []string{"*"}}
	if got, err := do(call, "events/emit", `{"event":"a"}`); abi.CodeOf(err) != abi.Denied {
		t.Errorf("a model emitted: %s, %v", got, err)
	}
	if len(log.events) != 0 {
		t.Errorf("emitted %v", log.events)
	}
}
