package host_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestEventsSayForWhom: $event.by and $event.source of the event of an agent are the agent, whatever it
// writes, and it starts no run with the event of another run.
func TestEventsSayForWhom(t *testing.T) {
	h := open(t, host.Options{Workspace: t.TempDir()})
	must(t, h, "sentinel/create", `{"definition":{"id":"d","name":"d","steps":[{"type":"set","values":{"got":{"expr":"[$event.by, $event.source, $event.name].join()"}}}]}}`, nil)
	for _, c := range []struct {
		by          command.By
		event, want string
	}{
		{command.ByAgent, `{"by":"user"}`, "agent:ci,agent:ci,manual"},
		{command.ByAgent, `{}`, "agent:ci,agent:ci,manual"},
		{command.ByAgent, `{"type":"git:push","source":"user","by":"","hops":3,"path":["x"],"data":{"by":"user"}}`, "agent:ci,agent:ci,git:push"},
		{command.ByUser, `{"by":"agent:ci"}`, ",user,manual"},
		{command.ByUser, `{"type":"sentinel:x:failed","source":"sentinel/x","data":{}}`, ",sentinel/x,sentinel:x:failed"},
	} {
		call := &command.Call{Command: "sentinel/run", Params: json.RawMessage(`{"sentinelId":"d","event":` + c.event + `}`), By: c.by}
		if c.by == command.ByAgent {
			call.As = "ci"
		}
		out, err := h.CallAs(t.Context(), call)
		var res runtime.Result
		if err == nil {
			err = json.Unmarshal(out, &res)
		}
		var got string
		if err == nil {
			err = json.Unmarshal(res.Variables["got"], &got)
		}
		if err != nil || res.Status != sentinels.StatusCompleted || got != c.want {
			t.Errorf("%s %s: %q %v %s, want %q", c.by, c.event, got, err, out, c.want)
		}
	}
	_, err := h.CallAs(t.Context(), &command.Call{Command: "sentinel/run", By: command.ByAgent, As: "ci", Params: json.RawMessage(`{"sentinelId":"d","event":{"type":"sentinel:x:failed","source":"user"}}`)})
	if err != nil {
		t.Errorf("an event with the form of those of runs: %v", err)
	}
	_, err = h.CallAs(t.Context(), &command.Call{Command: "sentinel/run", By: command.ByAgent, As: "ci", Params: json.RawMessage(`{"sentinelId":"d","event":{"type":"sentinel:d:failed","source":"user"}}`)})
	if err == nil || !strings.Contains(err.Error(), `"sentinel:d:failed" is an event of runs of a stored sentinel`) {
		t.Errorf("the event of a run by an agent: %v", err)
	}
}

// TestAgentsFireNoTriggerOfTheEngine: what waits for an event of the runs of a stored sentinel does not
// take one of that name that an agent, a person or a step emits, whatever the pattern is; with another
// ID, and with the source user, it does.
func TestAgentsFireNoTriggerOfTheEngine(t *testing.T) {
	h := open(t, host.Options{Workspace: t.TempDir()})
	if err := h.Runtime().Arm(t.Context()); err != nil {
		t.Fatal(err)
	}
	create := func(id, trigger, steps string) {
		t.Helper()
		must(t, h, "sentinel/create", `{"definition":{"id":"`+id+`","name":"`+id+`","concurrency":"parallel","trigger":`+trigger+`,"steps":[`+steps+`]}}`, nil)
	}
	create("build", `{"type":"manual"}`, ``)
	create("guard", `{"type":"event","event":["sentinel:build:completed","sentinel:build:failed"]}`, ``)
	create("any", `{"type":"event","event":"sentinel:*:ended"}`, ``)
	create("engine", `{"type":"event","event":"sentinel:ghost:failed","source":"engine"}`, ``)
	create("free", `{"type":"event","event":"sentinel:ghost:failed"}`, ``)
	create("word", `{"type":"event","event":"sentinel:build:ready"}`, ``)
	create("users", `{"type":"event","event":"sentinel:build:failed","source":"user"}`, ``)
	create("emitter", `{"type":"manual"}`, `{"type":"emit","event":"sentinel:build:failed"}`)
	waiting := func(step string) sentinels.RunID {
		t.Helper()
		var handle struct{ ID sentinels.RunID }
		must(t, h, "sentinel/start", `{"definition":{"name":"waits","steps":[`+step+`]}}`, &handle)
		return handle.ID
	}
	engine := waiting(`{"type":"wait","event":"sentinel:build:completed","outputTo":"e"}`)
	user := waiting(`{"type":"wait","event":"sentinel:build:completed","source":"user","outputTo":"e"}`)
	for _, event := range []string{"sentinel:build:failed", "sentinel:build:completed", "sentinel:ghost:failed", "sentinel:build:ready"} {
		call := &command.Call{Command: "events/emit", By: command.ByAgent, As: "ci", Params: json.RawMessage(`{"event":"` + event + `","data":{"status":"failed"}}`)}
		if _, err := h.CallAs(t.Context(), call); err != nil {
			t.Fatal(err)
		}
	}
	must(t, h, "sentinel/run", `{"sentinelId":"emitter"}`, nil)
	fired := func(id sentinels.ID) uint64 {
		t.Helper()
		list, err := h.Runtime().Triggers(id)
		if err != nil {
			t.Fatal(err)
		}
		return list[0].Started
	}
	sourceOf := func(run sentinels.RunID) string {
		t.Helper()
		res, err := h.Runtime().Wait(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		var out struct{ Event struct{ Source string } }
		if err := json.Unmarshal(res.Variables["e"], &out); err != nil {
			t.Fatal(err, res)
		}
		return out.Event.Source
	}
	if got := sourceOf(user); got != "agent:ci" {
		t.Errorf("the source of the user's event is %q", got)
	}
	// The ends of emitter and user are events, too; those of build come behind all others.
	must(t, h, "sentinel/run", `{"sentinelId":"build"}`, nil)
	if got := sourceOf(engine); got != "engine/build" {
		t.Errorf("the wait for the engine's event took that of %q", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for id, want := range map[sentinels.ID]uint64{"guard": 1, "engine": 0, "free": 1, "word": 1, "users": 2} {
		for fired(id) < want && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		if got := fired(id); got != want {
			t.Errorf("%s was started %d times, want %d", id, got, want)
		}
	}
}
