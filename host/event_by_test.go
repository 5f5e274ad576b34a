package host_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
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

// TestEventsOfTransactionsSayForWhom: the events about tickets and messages that a call causes have the agent behind
// it, as those that it emits; those of a person have none, and those of an agent's steps have the agent.
func TestEventsOfTransactionsSayForWhom(t *testing.T) {
	h := open(t, host.Options{Workspace: t.TempDir()})
	work := func(id string, do func(name string, params map[string]any) json.RawMessage) {
		t.Helper()
		do("ticket/create", map[string]any{"id": id, "title": "x"})
		var claim struct{ Token uint64 }
		if out := do("ticket/claim", map[string]any{"id": id}); out != nil {
			if err := json.Unmarshal(out, &claim); err != nil {
				t.Fatal(err)
			}
			do("ticket/heartbeat", map[string]any{"id": id, "token": claim.Token, "phase": "tests"})
			do("ticket/complete", map[string]any{"id": id, "token": claim.Token}) // in a transaction of its own
		}
		do("ticket/comment", map[string]any{"id": id, "text": "y"})
		do("collaboration/chat/send", map[string]any{"room": id, "message": "z"})
		do("events/emit", map[string]any{"event": "go", "data": map[string]any{"ticket_id": id}})
	}
	for id, call := range map[string]command.Call{"T-person": {By: command.ByUser}, "T-agent": {By: command.ByAgent, As: "ci"}} {
		work(id, func(name string, params map[string]any) json.RawMessage {
			t.Helper()
			text, err := json.Marshal(params)
			if err != nil {
				t.Fatal(err)
			}
			call.Command, call.Params = name, text
			out, err := h.CallAs(t.Context(), &call)
			if err != nil {
				t.Fatal(name, err)
			}
			return out
		})
	}
	for id, call := range map[string]command.Call{"T-step": {By: command.ByUser}, "T-step-of-agent": {By: command.ByAgent, As: "ci"}} {
		var steps []any
		work(id, func(name string, params map[string]any) json.RawMessage {
			steps = append(steps, map[string]any{"type": "command", "command": name, "params": params})
			return nil
		})
		text, err := json.Marshal(map[string]any{"definition": map[string]any{"name": "works", "steps": steps}})
		if err != nil {
			t.Fatal(err)
		}
		call.Command, call.Params = "sentinel/run", text
		var res runtime.Result
		out, err := h.CallAs(t.Context(), &call)
		if err == nil {
			err = json.Unmarshal(out, &res)
		}
		if err != nil || res.Status != sentinels.StatusCompleted {
			t.Fatalf("%s: %s %v", id, out, err)
		}
	}
	events, err := h.Runtime().Events("", 1000)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, e := range events {
		var data struct {
			TicketID string `json:"ticket_id"`
			Room     string
		}
		if err := json.Unmarshal(e.Data, &data); err != nil {
			t.Fatal(err)
		}
		id := cmp.Or(data.TicketID, data.Room)
		want := ""
		if strings.Contains(id, "agent") {
			want = "agent:ci"
		}
		if count[id+" "+e.Name]++; e.By != want {
			t.Errorf("%s about %s is by %q, want %q", e.Name, id, e.By, want)
		}
	}
	for id, least := range map[string]int{"T-person": 5, "T-agent": 5, "T-step": 4, "T-step-of-agent": 4} {
		kinds := 0
		for name := range count {
			if strings.HasPrefix(name, id+" ") {
				kinds++
			}
		}
		if kinds < least {
			t.Errorf("%d kinds of events about %s: %v", kinds, id, count)
		}
	}
}

// TestTicketEventsInACircle: a sentinel that changes a ticket for each change of one ends as one that emits the event that
// it waits for: an agent's command counts its events, and the chain of its runs has an end.
func TestTicketEventsInACircle(t *testing.T) {
	const hops = 3
	h := open(t, host.Options{Workspace: t.TempDir(), Limits: runtime.Limits{Hops: hops, AgentEvents: 100}})
	if err := h.Runtime().Arm(t.Context()); err != nil {
		t.Fatal(err)
	}
	must(t, h, "ticket/create", `{"id":"T-1","title":"x"}`, nil)
	must(t, h, "sentinel/create", `{"definition":{"id":"echo","name":"echo","concurrency":"parallel","trigger":{"type":"event","event":"ticket:activity"},"steps":[
		{"type":"command","command":"ticket/log","params":{"id":"$event.ticket_id","category":"comment","message":"again"}}]}}`, nil)
	agent := func() error {
		_, err := h.CallAs(t.Context(), &command.Call{Command: "ticket/log", Params: json.RawMessage(`{"id":"T-1","category":"comment","message":"x"}`), By: command.ByAgent, As: "ci"})
		return err
	}
	if err := agent(); err != nil {
		t.Fatal(err)
	}
	var trigger runtime.TriggerInfo
	for trigger.Refused == 0 && trigger.Started <= hops {
		list, err := h.Runtime().Triggers("echo")
		if err != nil {
			t.Fatal(err)
		}
		trigger = list[0]
		time.Sleep(time.Millisecond)
	}
	if trigger.Started != hops || !strings.Contains(trigger.LastReason, "a chain of events runs in a circle: echo -> echo") {
		t.Errorf("%d runs were started; the newest firing: %s", trigger.Started, trigger.LastReason)
	}
	err := agent()
	for range 200 {
		if err == nil {
			err = agent()
		}
	}
	if abi.CodeOf(err) != abi.Limit || !strings.Contains(err.Error(), "agent:ci emits more events in a minute than it may (limits.agentEvents)") {
		t.Errorf("many changes of an agent: %v", err)
	}
	must(t, h, "ticket/log", `{"id":"T-1","category":"comment","message":"of a person"}`, nil)
}

// TestEventsOfModelsSayForWhom: what a model emits in the run of a person has the model behind it, in a transaction too,
// and so have the events of a run that it starts and of one that its event starts. A step of the person has none.
func TestEventsOfModelsSayForWhom(t *testing.T) {
	said := []answer{
		{tool: "events_emit", args: map[string]any{"event": "told", "data": map[string]any{"version": "6.6.6"}}},
		{tool: "ticket_create", args: map[string]any{"title": "x"}},
		{tool: "sentinel_run", args: map[string]any{"sentinelId": "leaf"}},
	}
	newModelServer(t, func(r chatRequest) answer {
		if n := r.answers(); n < len(said) {
			return said[n]
		}
		return answer{text: "done"}
	})
	h := open(t, host.Options{Workspace: t.TempDir()})
	if err := h.Runtime().Arm(t.Context()); err != nil {
		t.Fatal(err)
	}
	must(t, h, "sentinel/create", `{"definition":{"id":"leaf","name":"leaf","steps":[{"type":"emit","event":"leaf"}]}}`, nil)
	must(t, h, "sentinel/create", `{"definition":{"id":"ship","name":"ship","trigger":{"type":"event","event":"told"},"steps":[{"type":"emit","event":"shipping"},{"type":"approve","prompt":"Ship?"}]}}`, nil)
	res := run(t, h, `{"name":"person","steps":[{"type":"emit","event":"before"},
		{"type":"llm","prompt":"hi","tools":["events/emit","ticket/create","sentinel/run"]},{"type":"emit","event":"after"}]}`, t.TempDir())
	if res.Status != sentinels.StatusCompleted {
		t.Fatalf("%s %v", res.Status, res.Error)
	}
	var shipped []runtime.RunInfo
	for len(shipped) == 0 {
		var err error
		if shipped, err = h.Runtime().Runs(runtime.RunFilter{Sentinel: "ship"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	if q := asked(t, h, shipped[0].ID, ""); q.OriginBy != "model" {
		t.Errorf("the question is by %q: %s", q.OriginBy, q.Origin)
	}
	if lines := linesOfQuestion(t, h, shipped[0].ID); !strings.Contains(lines, "6.6.6") {
		t.Errorf("the question shows %q", lines)
	}
	list, err := h.Runtime().Events("", 1000)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range list {
		got[e.Name] = e.By
	}
	want := map[string]string{"before": "", "told": "model", "ticket:update": "model", "leaf": "model", "after": "", "shipping": "model"}
	for name, by := range want {
		if was, found := got[name]; !found || was != by {
			t.Errorf("%s is by %q, want %q: %v", name, was, by, got)
		}
	}
}

// TestEventsOfAgentsHaveARate: beyond limits.agentEvents a call or step of an agent emits nothing, and neither does the
// run of a person's sentinel that its event starts, nor a run that this one starts. Those of persons do.
func TestEventsOfAgentsHaveARate(t *testing.T) {
	for most, want := range map[int]sentinels.Status{1: sentinels.StatusFailed, 100: sentinels.StatusCompleted} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			h := open(t, host.Options{Workspace: t.TempDir(), Limits: runtime.Limits{AgentEvents: most}})
			if err := h.Runtime().Arm(t.Context()); err != nil {
				t.Fatal(err)
			}
			const relay = `{"type":"emit","event":"hop"},
				{"type":"command","command":"events/emit","params":{"event":"hop"}},
				{"type":"command","command":"ticket/create","params":{"title":"x"}}`
			must(t, h, "sentinel/create", `{"definition":{"id":"leaf","name":"leaf","steps":[`+relay+`]}}`, nil)
			must(t, h, "sentinel/create", `{"definition":{"id":"relay","name":"relay","trigger":{"type":"event","event":"go"},"steps":[`+relay+`,
				{"type":"sentinel","definition":{"$ref":"leaf"}},
				{"type":"command","command":"sentinel/run","params":{"sentinelId":"leaf","event":{"x":1}}},
				{"type":"command","command":"sentinel/start","params":{"sentinelId":"leaf"}}]}}`, nil)
			agent := func(name, params string) (out json.RawMessage, err error) {
				return h.CallAs(t.Context(), &command.Call{Command: name, Params: json.RawMessage(params), By: command.ByAgent, As: "ci"})
			}
			ends := func(id sentinels.ID, n int) (runs []runtime.RunInfo) {
				t.Helper()
				for len(runs) < n {
					var err error
					if runs, err = h.Runtime().Runs(runtime.RunFilter{Sentinel: id}); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Millisecond)
				}
				for i := range runs {
					res, err := h.Runtime().Wait(t.Context(), runs[i].ID)
					if err != nil {
						t.Fatal(err)
					}
					runs[i].Status, runs[i].Error = res.Status, res.Error
					if res.Status != want || want == sentinels.StatusFailed && abi.CodeOf(res.Error) != abi.Limit {
						t.Errorf("a run of %s: %s, %v", id, res.Status, res.Error)
					}
				}
				return runs
			}
			if _, err := agent("events/emit", `{"event":"go"}`); err != nil {
				t.Fatal(err)
			}
			relayed := ends("relay", 1)
			out, err := agent("sentinel/run", `{"definition":{"name":"own","steps":[{"type":"emit","event":"own"}]}}`)
			var res runtime.Result
			if err == nil {
				err = json.Unmarshal(out, &res)
			}
			if err != nil || res.Status != want {
				t.Errorf("the agent's own run: %s, %v", out, err)
			}
			_, err = agent("events/emit", `{"event":"more"}`)
			if most == 1 {
				const says = "agent:ci emits more events in a minute than it may (limits.agentEvents)"
				if abi.CodeOf(err) != abi.Limit || !strings.Contains(err.Error(), says) || !strings.Contains(fmt.Sprint(relayed[0].Error), says) {
					t.Errorf("%v; %v", err, relayed[0].Error)
				}
				must(t, h, "events/emit", `{"event":"person"}`, nil)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			ends("leaf", 3)
			must(t, h, "sentinel/run", `{"sentinelId":"leaf"}`, nil)
			list, err := h.Runtime().Events("", 1000)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]int{}
			for _, e := range list {
				got[e.Name+" by "+e.By]++
			}
			// Four runs that the agent caused, and one of a person.
			for name, n := range map[string]int{"hop by agent:ci": 8, "hop by ": 2, "ticket:update by agent:ci": 4, "ticket:update by ": 1} {
				if got[name] != n {
					t.Errorf("%d events %s, want %d: %v", got[name], name, n, got)
				}
			}
		})
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

// TestOwnDefinitionsOfAgents: the run of an agent's own definition is none of the sentinel that is stored with its id
// later: not for triggers, waits and loops, the overlap policy, expected runs, lists and what names the sentinel.
func TestOwnDefinitionsOfAgents(t *testing.T) {
	h := open(t, host.Options{Workspace: t.TempDir()})
	if err := h.Runtime().Arm(t.Context()); err != nil {
		t.Fatal(err)
	}
	start := func(event string) (sentinels.RunID, error) {
		raw, err := h.CallAs(t.Context(), &command.Call{Command: "sentinel/start", By: command.ByAgent, As: "ci", Attempt: 1,
			Params: json.RawMessage(`{"definition":{"id":"build","name":"build","steps":[{"type":"wait","event":"` + event + `"}]}}`)})
		var handle struct{ ID sentinels.RunID }
		if err == nil {
			err = json.Unmarshal(raw, &handle)
		}
		return handle.ID, err
	}
	own, err := start("go")
	if err == nil {
		_, err = start("never") // it is active all the time
	}
	if err != nil {
		t.Fatal(err)
	}
	var waits, loops struct{ ID sentinels.RunID }
	must(t, h, "sentinel/create", `{"definition":{"id":"build","name":"build","concurrency":"skip","trigger":{"type":"event","event":"begin"},"steps":[]}}`, nil)
	must(t, h, "sentinel/create", `{"definition":{"id":"guard","name":"guard","trigger":{"type":"event","event":"sentinel:build:completed"},"steps":[{"type":"set","values":{"of":"$event.data.run"}}]}}`, nil)
	must(t, h, "sentinel/start", `{"definition":{"name":"waits","steps":[{"type":"wait","event":"sentinel:build:completed","outputTo":"e"}]}}`, &waits)
	must(t, h, "sentinel/start", `{"definition":{"name":"loops","safety":{"maxIterations":1},"loop":{"type":"event","event":"sentinel:build:completed"},"steps":[{"type":"set","values":{"of":"$event.data.run"}}]}}`, &loops)
	result := func(id sentinels.RunID) runtime.Result {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		res, err := h.Runtime().Wait(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	newest := func(id string) runtime.RunInfo {
		t.Helper()
		list, err := h.Runtime().Runs(runtime.RunFilter{Sentinel: sentinels.ID(id), OfStored: true, Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 0 {
			return runtime.RunInfo{}
		}
		return list[0]
	}
	must(t, h, "events/emit", `{"event":"go"}`, nil)
	if got := result(own); got.Status != sentinels.StatusCompleted {
		t.Fatalf("%+v", got)
	}
	if totals, err := h.Runtime().Totals("build"); err != nil || totals.Runs != 0 {
		t.Errorf("the runs of build: %+v, %v", totals, err)
	}
	var status struct{ State runtime.RunInfo }
	must(t, h, "sentinel/status", `{"sentinelId":"build"}`, &status)
	if status.State.Status != "idle" {
		t.Errorf("the status of build: %+v", status.State)
	}
	if _, err := start("go"); err == nil || !strings.Contains(err.Error(), "is another one") {
		t.Errorf("a definition with the id of a stored sentinel: %v", err)
	}
	must(t, h, "events/emit", `{"event":"begin"}`, nil)
	for _, id := range []sentinels.RunID{waits.ID, loops.ID} {
		res := result(id)
		text := string(res.Variables["of"])
		if id == waits.ID {
			var out struct {
				Event struct{ Data struct{ Run string } }
			}
			if err := json.Unmarshal(res.Variables["e"], &out); err != nil {
				t.Fatal(err)
			}
			text = `"` + out.Event.Data.Run + `"`
		}
		if want := newest("build").ID; text != `"`+string(want)+`"` || want == own {
			t.Errorf("it took the end of run %s, want %s of the stored sentinel", text, want)
		}
	}
	var guard runtime.RunInfo
	for guard = newest("guard"); guard.ID == ""; guard = newest("guard") {
		time.Sleep(time.Millisecond)
	}
	list, err := h.Runtime().Triggers("guard")
	if err != nil || list[0].Started != 1 {
		t.Errorf("%+v, %v: want one firing", list, err)
	}
	if got := string(result(guard.ID).Variables["of"]); got == `"`+string(own)+`"` {
		t.Error("the trigger took the end of the agent's run")
	}
}

// TestEventNames emits names that are known only when a run executes: the step refuses what the command refuses.
func TestEventNames(t *testing.T) {
	h := open(t, environment())
	for name, refused := range map[string]bool{
		"git:push": false, "sentinel:x:mine": false, "A-1._b": false,
		"a b": true, "a:*": true, "a::b": true, ":a": true, "a/b": true, "größe": true, strings.Repeat("x", 129): true, strings.Repeat("x", 128): false,
	} {
		_, want := sentinels.CheckEventName(name)
		var out struct{ Error *abi.Error }
		must(t, h, "sentinel/run", map[string]any{"definition": map[string]any{
			"name": "emits", "variables": map[string]any{"name": name}, "steps": []any{map[string]any{"type": "emit", "event": "$name"}},
		}}, &out)
		err := call(t, h, "events/emit", map[string]any{"event": name}, nil)
		switch {
		case !refused && (out.Error != nil || err != nil):
			t.Errorf("%q: step %v, command %v", name, out.Error, err)
		case refused && (out.Error == nil || err == nil || !strings.HasSuffix(out.Error.Message, err.Error()) || out.Error.Hint != want || abi.As(err).Hint != want):
			t.Errorf("%q: step %+v, command %v, want the hint %s", name, out.Error, err, want)
		}
	}
}
