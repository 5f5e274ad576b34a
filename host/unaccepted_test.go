package host_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// start starts a sentinel and returns its run.
func (s *storing) start(by command.By, id string) sentinels.RunID {
	s.Helper()
	raw, err := s.call(by, "sentinel/start", map[string]any{"sentinelId": id}, "sentinel/start")
	var r struct{ Run sentinels.RunID }
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err != nil {
		s.Fatal(err)
	}
	return r.Run
}

// until waits for a condition that events of the host make true.
func (s *storing) until(what string, ok func() bool) {
	s.Helper()
	for !ok() {
		if s.Context().Err() != nil {
			s.Fatal(what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestUnacceptedRevisionsSetOffNothing: a run of an agent's revision of a person's sentinel sets off no trigger that
// waits for the sentinel, whether an agent, a person or a parent starts it, until a person accepts the revision. A sentinel that
// only an agent has made sets off what waits for it.
func TestUnacceptedRevisionsSetOffNothing(t *testing.T) {
	s := newStoring(t, host.Options{})
	set := map[string]any{"id": "do", "type": "set", "values": map[string]any{"a": 1}}
	plain := func(id string, steps ...any) map[string]any {
		return map[string]any{"id": id, "name": id, "steps": steps}
	}
	s.must(command.ByUser, "sentinel/create", map[string]any{"definition": plain("gate", map[string]any{"id": "g", "type": "approve", "prompt": "?"}, set)})
	s.must(command.ByUser, "sentinel/create", map[string]any{"definition": plain("parent", map[string]any{"type": "sentinel", "definition": map[string]any{"$ref": "gate"}})})
	for _, of := range []string{"gate", "own"} {
		after := plain("after-"+of, set)
		after["concurrency"], after["trigger"] = "parallel", map[string]any{"type": "event", "event": "sentinel:" + of + ":completed"}
		s.must(command.ByUser, "sentinel/create", map[string]any{"definition": after})
	}
	s.must(command.ByAgent, "sentinel/create", map[string]any{"definition": plain("own", set)})
	s.must(command.ByAgent, "sentinel/step/remove", map[string]any{"sentinelId": "gate", "address": "g"})
	end := func(by command.By, id string) sentinels.RunID {
		t.Helper()
		run := s.start(by, id)
		if r, err := s.h.Runtime().Wait(t.Context(), run); err != nil || r.Status != sentinels.StatusCompleted {
			t.Fatalf("%s: %s %v, %v", id, r.Status, r.Error, err)
		}
		return run
	}
	end(command.ByAgent, "gate")
	end(command.ByUser, "gate")
	end(command.ByUser, "parent")
	own := end(command.ByAgent, "own")
	s.accept("gate")
	want := []sentinels.RunID{end(command.ByAgent, "gate"), end(command.ByUser, "gate")}
	// A trigger reads events in order, so all those before have set off what they do.
	for of, n := range map[sentinels.ID]int{"after-gate": len(want), "after-own": 1} {
		var fired []runtime.RunInfo
		s.until("nothing is set off", func() bool {
			var err error
			if fired, err = s.h.Runtime().Runs(runtime.RunFilter{Sentinel: of}); err != nil {
				t.Fatal(err)
			}
			return len(fired) >= n
		})
		if len(fired) != n {
			t.Errorf("%s: %d runs were set off, want %d", of, len(fired), n)
		}
	}
	want = append(want, own)
	all, err := s.h.Runtime().Events("sentinel:*:completed", 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		counts := false
		for _, run := range want {
			counts = counts || strings.Contains(string(e.Data), string(run))
		}
		if e.Name != "sentinel:gate:completed" && e.Name != "sentinel:own:completed" {
			continue
		}
		if alone := strings.HasPrefix(e.Source, "engine/run/"); alone == counts {
			t.Errorf("event %s of %s has the source %s", e.Name, e.Data, e.Source)
		}
	}
}
