package host_test

import (
	"encoding/json"
	"strings"
	"testing"

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
	if err == nil || !strings.Contains(err.Error(), "events of runs") {
		t.Errorf("the event of a run by an agent: %v", err)
	}
}
