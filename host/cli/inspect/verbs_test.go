package inspect_test

import (
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/cli/clitest"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

const runs = `{"sentinels":[{"sentinelId":"a","name":"A","status":"idle","loop":"once","steps":2,"triggers":[{"type":"event","detail":"git:*","paused":true}]}],
	"runs":[{"id":"01a207be-283b-7b36-bbb7-8aa60211067c","sentinel":"a","status":"waiting","iteration":2,"createdAt":"2026-01-02T03:00:00Z","live":true,
	"decisions":[{"call":"0!1","kind":"approval","prompt":"really?","choices":["approve","reject"]}]}]}`

func TestList(t *testing.T) {
	results := map[string]any{"sentinel/list": runs}
	clitest.Check(t, []clitest.Case{
		{Args: []string{"list"}, Results: results, Calls: []string{`sentinel/list {"limit":20}`},
			Stdout: []string{"SENTINEL", "event git:* (paused)", "RUN", "0211067c", "waiting", "really?"}},
		{Args: []string{"list", "--status", "waiting", "--since", "1h", "-o", "jsonl"}, Results: results,
			Calls: []string{`sentinel/list {"limit":20,"since":"2026-01-02T02:04:05Z","status":"waiting"}`}, Stdout: []string{`{"id":"01a207be-283b-7b36-bbb7-8aa60211067c"`}},
		{Args: []string{"list", "--limit", "0"}, Code: 2, Stderr: []string{"--limit 0 is not between 1 and 1000"}},
		{Args: []string{"list", "--since", "soon"}, Code: 2, Stderr: []string{`invalid --since "soon"`, "hint: such as 2h"}},
		{Args: []string{"list"}, Results: map[string]any{"sentinel/list": abi.New(abi.Denied, "not yours")}, Calls: []string{`sentinel/list {"limit":20}`}, Code: 4, Stderr: []string{"sentinel: not yours"}},
	})
}

func TestStatus(t *testing.T) {
	find := `sentinel/list {"limit":1000,"sentinelId":"a"}`
	stored := `sentinel/list {"only":"sentinels","sentinelId":"a"}`
	const reply = `{"id":"01a207be-283b-7b36-bbb7-8aa60211067c","state":{"id":"01a207be-283b-7b36-bbb7-8aa60211067c","status":"waiting","iteration":2,
		"currentStep":{"id":"ask","type":"approve","address":"0"},"lastStepAt":1767322800000,"variables":{"n":[1,2]},"nextFire":"2026-01-03T03:00:00Z"}}`
	const idle = `{"state":{"sentinel":"a","status":"idle","revision":3}}`
	newest := `sentinel/status {"run":"01a207be-283b-7b36-bbb7-8aa60211067c"}`
	clitest.Check(t, []clitest.Case{
		{Args: []string{"status", "a", "-o", "json"}, Results: map[string]any{"sentinel/list": runs, "sentinel/status": reply}, Stdout: []string{`"status": "waiting"`, `"currentStep": {`},
			Calls: []string{stored, find, newest}},
		{Args: []string{"status", "a"}, Results: map[string]any{"sentinel/list": runs, "sentinel/status": reply, "sentinel/triggers": `{"triggers":[]}`},
			Stdout: []string{"step         0 approve ask", "last step    2026-01-02 ", "next fire    2026-01-03 ", "$n           [1,2]"},
			Calls:  []string{stored, find, newest, `sentinel/triggers {"sentinelId":"a"}`}},
		{Args: []string{"status", "a"}, Results: map[string]any{"sentinel/list": `{"sentinels":[{"sentinelId":"a"}],"runs":[]}`, "sentinel/status": idle, "sentinel/triggers": `{"triggers":[]}`},
			Stdout: []string{"status    idle", "revision  3"}, Stderr: []string{`sentinel "a" has no run`},
			Calls: []string{stored, find, `sentinel/status {"sentinelId":"a"}`, `sentinel/triggers {"sentinelId":"a"}`}},
		{Args: []string{"status"}, Results: map[string]any{"sentinel/list": runs}, Calls: []string{`sentinel/list {"limit":1000,"only":"runs","status":"running"}`, `sentinel/list {"limit":1000,"only":"runs","status":"queued"}`, `sentinel/list {"limit":1000,"only":"runs","status":"paused"}`, `sentinel/list {"limit":1000,"only":"runs","status":"waiting"}`, `sentinel/list {"limit":1000,"only":"runs","status":"quarantined"}`}, Stdout: []string{"0211067c"}},
		{Args: []string{"status"}, Results: map[string]any{"sentinel/list": `{"sentinels":[],"runs":[]}`}, Calls: []string{`sentinel/list {"limit":1000,"only":"runs","status":"running"}`, `sentinel/list {"limit":1000,"only":"runs","status":"queued"}`, `sentinel/list {"limit":1000,"only":"runs","status":"paused"}`, `sentinel/list {"limit":1000,"only":"runs","status":"waiting"}`, `sentinel/list {"limit":1000,"only":"runs","status":"quarantined"}`}, Stderr: []string{"no active run"}},
	})
}

// What a queued run waits behind is shown once, with the time since.
func TestStatusOfQueuedRun(t *testing.T) {
	const reply = `{"state":{"id":"01a207be-283b-7b36-bbb7-8aa60211067c","status":"queued","queued":[{"reason":"an earlier run is active","since":"2026-01-02T03:00:00Z"}]}}`
	e := &clitest.Engine{Results: map[string]any{"sentinel/list": runs, "sentinel/status": reply, "sentinel/triggers": `{"triggers":[]}`}}
	out := clitest.Run(t, e, t.TempDir(), "", "status", "a")
	if out.Code != 0 || strings.Count(out.Stdout, "an earlier run is active") != 1 || !strings.Contains(out.Stdout, "the run since") {
		t.Errorf("exit %d: %s%s", out.Code, out.Stdout, out.Stderr)
	}
}

func TestEvents(t *testing.T) {
	events := map[string]any{
		"events/tail": `{"events":[{"id":"1","type":"git:push","source":"host","time":"2026-01-02T03:00:00Z","data":{"branch":"main"}}]}`,
		"events/emit": `{"id":"e1","event":"git:push","time":"2026-01-02T03:00:00Z"}`,
	}
	clitest.Check(t, []clitest.Case{
		{Args: []string{"events", "git:*", "--limit", "5"}, Results: events, Calls: []string{`events/tail {"limit":5,"pattern":"git:*"}`}, Stdout: []string{"git:push", `{"branch":"main"}`}},
		{Args: []string{"events", "-o", "jsonl"}, Results: events, Calls: []string{`events/tail {"limit":20}`}, Stdout: []string{`"type":"git:push"`}},
		{Args: []string{"emit", "git:push", "--data", `{"n": 1}`}, Results: events, Calls: []string{`events/emit {"data":{"n":1},"event":"git:push"}`}, Stdout: []string{"git:push  e1"}},
		{Args: []string{"emit", "git:push", "--data", "plain"}, Code: 2, Stderr: []string{"--data: ", "a text needs quotes of its own"}},
		{Args: []string{"events", "tail", "--after", "x"}, Code: 2, Stderr: []string{"--after needs -f"}},
	})
}
