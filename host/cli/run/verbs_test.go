package run_test

import (
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/cli/clitest"
)

const run = `{"id":"01a207be-283b-7b36-bbb7-8aa60211067c","sentinel":"a","status":"paused","live":true,"createdAt":"2026-01-02T03:00:00Z"}`

const id = "01a207be-283b-7b36-bbb7-8aa60211067c"

func TestControl(t *testing.T) {
	results := map[string]any{"sentinel/list": `{"sentinels":[],"runs":[` + run + `]}`}
	for _, name := range []string{"stop", "pause", "resume", "decide", "start", "status"} {
		results["sentinel/"+name] = run
	}
	results["sentinel/status"] = `{"state":` + run + `}`
	results["sentinel/start"] = `{"run":"` + id + `"}`
	results["sentinel/export"] = `{"revision":2,"definition":{"name":"a","steps":[{"type":"wait","durationMs":1}],"inputs":{"n":{"type":"integer"}}}}`
	find := `sentinel/list {"limit":1000,"sentinelId":"a"}`
	clitest.Check(t, []clitest.Case{
		{Args: []string{"stop", "a"}, Results: results, Calls: []string{find, `sentinel/stop {"run":"` + id + `"}`}, Stdout: []string{"paused  a  run " + id}},
		{Args: []string{"pause", "a", "-o", "jsonl"}, Results: results, Calls: []string{find, `sentinel/pause {"run":"` + id + `"}`}, Stdout: []string{`{"id":"` + id + `"`}},
		{Args: []string{"resume", "a", "--comment", "it is safe", "--on-interrupt", "retry"}, Results: results, Stdout: []string{"run " + id},
			Calls: []string{find, `sentinel/list {"only":"sentinels","sentinelId":"a"}`, `sentinel/resume {"by":"ann","comment":"it is safe","onInterrupt":"retry","run":"` + id + `"}`}},
		{Args: []string{"decide", "a", "0!1", "skip", "--result", `{"ok": true}`, "--comment", "seen"}, Results: results, Stderr: []string{"decided to skip; run " + id + " continues"},
			Calls: []string{find, `sentinel/decide {"by":"ann","call":"0!1","comment":"seen","result":{"ok":true},"run":"` + id + `","verdict":"skip"}`}},
		{Args: []string{"start", "a", "--input", "n=3", "--var", "who=Polly", "--event", `{"x":1}`, "--workspace", "/w"}, Results: results, Stdout: []string{"run " + id},
			Calls: []string{`sentinel/export {"sentinelId":"a"}`,
				`sentinel/start {"event":{"x":1},"inputs":{"n":3},"pinned":false,"sentinelId":"a","variables":{"who":"Polly"},"workspace":"/w"}`, `sentinel/status {"brief":true,"run":"` + id + `"}`}},
		{Args: []string{"decide", "a", "perhaps"}, Code: 2, Stderr: []string{`invalid decision "perhaps"`}},
		{Args: []string{"decide", "a", "retry", "--result", "1"}, Code: 2, Stderr: []string{"--result needs skip"}},
		{Args: []string{"start", "a", "--model", "m/x"}, Code: 2, Stderr: []string{"another process executes the run"}},
		{Args: []string{"start", "a", "--max-iterations", "+3"}, Code: 2, Stderr: []string{"a limit extension needs --resume RUN"}},
		{Args: []string{"run", "--resume", "a", "--max-iterations", "none"}, Code: 2, Stderr: []string{"want a whole number above 0"}},
		{Args: []string{"run", "a", "--record", "x", "--replay", "y"}, Code: 2, Stderr: []string{"exclude each other"}},
		{Args: []string{"run", "a", "--on-interrupt", "wait"}, Code: 2, Stderr: []string{`invalid --on-interrupt "wait"`}},
		{Args: []string{"fork", "a"}, Code: 2, Stderr: []string{"--iteration is missing"}},
		{Args: []string{"retry", "a", "--iteration", "0"}, Code: 2, Stderr: []string{"--iteration 0 is below 1"}},
	})
}

// TestDecideShowsWhatAgentsGave: decide shows with a question what the inbox does, and an approval of that names the question.
func TestDecideShowsWhatAgentsGave(t *testing.T) {
	asks := `{"id":"` + id + `","sentinel":"a","status":"waiting","live":true,"createdAt":"2026-01-02T03:00:00Z","decisions":[
		{"call":"0!1","question":"0123456789ab","kind":"approval","prompt":"Deploy?","choices":["approve","reject"],"since":"2026-01-02T03:00:00Z"}]}`
	results := map[string]any{
		"sentinel/list": `{"sentinels":[],"runs":[` + asks + `]}`, "sentinel/decide": run,
		"inbox/list": `{"entries":[{"id":"` + id + `","call":"0!1","kind":"approval","subject":"a","prompt":"Deploy?","choices":["approve","reject"],"since":"2026-01-02T03:00:00Z",
			"lines":["input \"target\", given by agent:ci: \"PROD\""]}]}`,
	}
	find := `sentinel/list {"limit":1000,"sentinelId":"a"}`
	look := `inbox/list {"id":"` + id + `","kind":["approval","doubt","quarantine"]}`
	const lines = "what agents or models gave run " + id + ", or changed in it:\n  input \"target\", given by agent:ci: \"PROD\"\n"
	clitest.Check(t, []clitest.Case{
		{Args: []string{"inbox"}, Results: results, Calls: []string{`inbox/list {"limit":50}`}, Stdout: []string{lines}},
		{Args: []string{"decide", "a", "approve", "--quiet"}, Code: 2, Results: results, Calls: []string{find, look},
			Stderr: []string{"Deploy?", lines, "approved by its name", "sentinel decide " + id + " 0123456789ab approve"}},
		{Args: []string{"decide", "a", "fail"}, Results: results, Stderr: []string{lines},
			Calls: []string{find, look, `sentinel/decide {"by":"ann","call":"0!1","question":"0123456789ab","run":"` + id + `","verdict":"fail"}`}},
		{Args: []string{"decide", "a", "0123456789ab", "approve"}, Results: results,
			Calls: []string{find, `sentinel/decide {"by":"ann","call":"0!1","question":"0123456789ab","run":"` + id + `","verdict":"approve"}`}},
	})
}

// TestStoredDo: do uses a stored sentinel of that name only if it is of a person or accepted, and
// says which one runs.
func TestStoredDo(t *testing.T) {
	for unaccepted, want := range map[string]string{
		"":                   "runs the stored sentinel do, revision 2, in place of",
		`"unaccepted":true,`: "revision 2, comes from a model or an agent and is not accepted: runs the one of the program",
	} {
		e := &clitest.Engine{Results: map[string]any{
			"sentinel/export": `{"sentinelId":"do","revision":2,` + unaccepted +
				`"definition":{"id":"do","name":"do","steps":[{"type":"wait","durationMs":7654321}]}}`,
			"ai/model":          `{"provider":"p","model":"m","priced":true}`,
			"sentinel/validate": `{"valid":true,"problems":[]}`,
		}}
		out := clitest.Run(t, e, t.TempDir(), "", "do", "repair the test")
		calls := strings.Join(e.Calls, "\n")
		used := strings.Contains(calls, "7654321")
		if !strings.Contains(out.Stderr, want) || used != (unaccepted == "") || !strings.Contains(calls, "sentinel/validate") {
			t.Errorf("%s: %s\n%s", unaccepted, out.Stderr, calls)
		}
	}
}
