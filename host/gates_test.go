package host_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/internal/needs"
)

// A brokenProject has a test that fails, a repair that is wrong, and one that is right.
type brokenProject struct {
	name, file, wrong, right string
	files                    map[string]string
	test                     []string
	check                    string // the test as acceptance criteria have it
}

var brokenProjects = []brokenProject{
	{"Go", "add.go", "return a * b", "return a + b", map[string]string{
		"go.mod":      "module example.com/add\n\ngo 1.22\n",
		"add.go":      "// Package add adds.\npackage add\n\n// Add returns the sum.\nfunc Add(a, b int) int {\n\treturn a - b\n}\n",
		"add_test.go": "package add\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif got := Add(2, 3); got != 5 {\n\t\tt.Fatalf(\"the sum is %d, want 5\", got)\n\t}\n}\n",
	}, []string{"go", "test", "./..."}, `GOCACHE="$WARM_CACHE" CGO_ENABLED=0 go test ./...`},
	{"Node", "add.js", "return a * b", "return a + b", map[string]string{
		"package.json": `{"name": "add", "version": "1.0.0", "scripts": {"test": "node --test"}}`,
		"add.js":       "function add(a, b) {\n\treturn a - b\n}\n\nmodule.exports = add\n",
		"add.test.js":  "const test = require('node:test')\nconst assert = require('node:assert')\nconst add = require('./add.js')\n\ntest('add', () => assert.strictEqual(add(2, 3), 5, 'the sum is not 5'))\n",
	}, []string{"node", "--test"}, "node --test"},
	{"Python", "add.py", "return a * b", "return a + b", map[string]string{
		"add.py":      "def add(a, b):\n    return a - b\n",
		"test_add.py": "import unittest\n\nfrom add import add\n\n\nclass TestAdd(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(2, 3), 5, 'the sum is not 5')\n",
		".gitignore":  "__pycache__/\n",
	}, []string{"python3", "-m", "unittest"}, "python3 -m unittest"},
}

// open makes the project in a repository, and returns a function that executes its tests. A
// check has a home without a build cache, so that each would compile Go's library, which takes a
// minute; it reads the cache of these tests, in which Go does without what it cannot write.
func (p brokenProject) open(t *testing.T) (ws string, git func(...string) string, passes func() bool) {
	t.Helper()
	version, warm := "--version", t.TempDir()
	if p.test[0] == "go" {
		version = "version"
		// Of this environment: project sets another folder for caches.
		if out, err := exec.Command("go", "env", "GOCACHE").Output(); err == nil {
			warm = strings.TrimSpace(string(out))
		}
	}
	t.Setenv("WARM_CACHE", warm)
	ws, git = project(t)
	needs.Program(t, ws, nil, p.test[0], version)
	write(t, ws, p.files)
	git("add", ".")
	git("commit", "-q", "-m", "broken")
	passes = func() bool {
		cmd := exec.Command(p.test[0], p.test[1:]...)
		cmd.Dir = ws
		cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0", "GOCACHE="+warm)
		out, err := cmd.CombinedOutput()
		t.Logf("%v: %v\n%s", p.test, err, out)
		return err == nil
	}
	if passes() {
		t.Fatal("the project is not broken")
	}
	return ws, git, passes
}

// settings are those with which the check of the project is executed.
func (p brokenProject) settings() map[string]string {
	return map[string]string{"verify.env": "WARM_CACHE", "verify.read": os.Getenv("WARM_CACHE"), "tickets.approval": "on", "tickets.reviewDelay": "0s", "tickets.review": "on"}
}

// fileTicket files the ticket T-1 for the repair.
func (p brokenProject) fileTicket(t *testing.T, h *host.Host) {
	t.Helper()
	must(t, h, "ticket/create", map[string]any{"id": "T-1", "title": "Repair add", "acceptance_criteria": map[string]any{"checks": []any{
		map[string]any{"id": "tests", "type": "test_pass", "verify": map[string]any{"command": p.check}},
	}}}, nil)
}

func (p brokenProject) read() answer {
	return answer{tool: "fs_read", args: map[string]any{"path": p.file}}
}

func (p brokenProject) edit(from, to string) answer {
	return answer{tool: "code_edit", args: map[string]any{"path": p.file, "search": from, "replace": to}}
}

const (
	rejects  = `{"decision": "REQUEST_CHANGES", "score": 70, "issues": [{"severity": "major", "file": "add", "line": 1, "category": "docs", "message": "no word about overflow", "suggestion": "say it"}], "feedback_for_agent": ["say what happens on overflow", "keep the comment short"]}`
	approves = `{"decision": "APPROVE", "score": 95, "issues": [], "feedback_for_agent": []}`
)

// From broken to merged, with all gates on: "sentinel_failed, ready with feedback, in_progress,
// and so on". The tests of a project fail, and so does the verification of the first repair; the
// second one passes; the review rejects it; the worker reads each item of the feedback and
// continues its branch; the review approves; a person approves; the branch is merged into the
// user's tree, where the tests pass. The host does the same for each language: with -short only
// the project in Go is repaired.
func TestSpecWorkerToMerged(t *testing.T) {
	for _, p := range brokenProjects {
		t.Run(p.name, func(t *testing.T) {
			if testing.Short() && p.name != "Go" {
				t.Skip("repairs a project in each language: only the one in Go with -short")
			}
			ws, git, passes := p.open(t)
			better := "/* of 53 bits */ " + p.right
			if p.name == "Python" {
				better = p.right + "  # of any size"
			}
			reviews, fed, firstDiff, secondDiff := 0, "", "", ""
			newModelServer(t, func(r chatRequest) answer {
				if isReview(r) {
					reviews++
					if prompt := r.text("user"); reviews == 1 {
						firstDiff = prompt
						return answer{text: rejects}
					}
					secondDiff = r.text("user")
					return answer{text: approves}
				}
				return writes(func(n int, prompt string) []answer {
					switch {
					case strings.Contains(prompt, "rejected by the sentinel reviewer"):
						fed = prompt
						return []answer{p.read(), p.edit(p.right, better)}
					case n == 1:
						return []answer{p.read(), p.edit("return a - b", p.wrong)}
					}
					return []answer{p.read(), p.edit(p.wrong, p.right)}
				})(r)
			})
			h := open(t, host.Options{Workspace: ws, Dir: filepath.Join(t.TempDir(), ".sentinel"), Set: p.settings()})
			p.fileTicket(t, h)
			at := func(state, code string) reviewedTicket {
				t.Helper()
				var out struct{ Ticket reviewedTicket }
				must(t, h, "ticket/get", `{"id": "T-1"}`, &out)
				if out.Ticket.State != state || out.Ticket.HoldCode != code {
					t.Fatalf("the ticket is %s %s, want %s %s: %+v", out.Ticket.State, out.Ticket.HoldCode, state, code, out.Ticket)
				}
				return out.Ticket
			}
			if f := forge(t, h, ws); f.Worked[0].State != "in_review" || f.Worked[0].Attempts != 2 {
				t.Fatalf("worked %+v", f.Worked)
			}
			at("in_review", "")
			first := git("rev-parse", "sentinel/T-1")
			review(t, h, ws, nil)
			if got := at("ready", ""); got.RejectionCount != 1 || got.VerificationStatus != "sentinel_rejected" || got.Feedback == nil || len(got.Feedback.Issues) != 1 {
				t.Errorf("rejected: %+v", got)
			}
			if f := forge(t, h, ws); f.Worked[0].State != "in_review" || f.Worked[0].Attempts != 1 {
				t.Fatalf("worked again %+v", f.Worked)
			}
			for _, item := range []string{"say what happens on overflow", "keep the comment short", "Address ALL issues"} {
				if !strings.Contains(fed, item) {
					t.Errorf("the worker does not read %q:\n%s", item, fed)
				}
			}
			if git("merge-base", first, "sentinel/T-1") != first {
				t.Error("the second claim did not continue the branch")
			}
			review(t, h, ws, nil)
			if !strings.Contains(firstDiff, "+") || !strings.Contains(firstDiff, p.right) || !strings.Contains(secondDiff, better) || !strings.Contains(secondDiff, "say what happens on overflow") || reviews != 2 {
				t.Errorf("%d reviews, of\n%s\nand\n%s", reviews, firstDiff, secondDiff)
			}
			at("blocked", "work_approval")
			must(t, h, "ticket/decide", `{"id": "T-1", "action": "accept"}`, nil)
			at("done", "")
			git("merge", "-q", "--ff-only", "sentinel/T-1")
			if !passes() {
				t.Error("the tests fail behind the merge")
			}
			if text, err := os.ReadFile(filepath.Join(ws, p.file)); err != nil || !strings.Contains(string(text), better) {
				t.Errorf("%s: %s, %v", p.file, text, err)
			}
			// The states that the ticket went through.
			var out struct {
				Activities []struct {
					Category string
					Metadata struct{ From, To string }
				}
			}
			must(t, h, "ticket/activity", `{"id": "T-1", "category": ["ticket_claimed", "ticket_state_changed"], "limit": 200}`, &out)
			states := []string{"ready"}
			for _, a := range slices.Backward(out.Activities) {
				if to := a.Metadata.To; to != "" && to != states[len(states)-1] {
					states = append(states, to)
				}
			}
			if got, want := strings.Join(states, " "), "ready in_progress in_review sentinel_failed ready in_progress in_review blocked done"; got != want {
				t.Errorf("states %s\nwant   %s", got, want)
			}
		})
	}
}

// S000: "sentinel rejections should allow 2 retries", and then "hold_reason = 'Sentinel
// rejected after max retries'"; X5: "same total of 3 runs; separate gates and counters". The
// third rejection holds the ticket for a person, whose release resets the counters.
func TestSpecReviewerRejectsThreeTimes(t *testing.T) {
	ws, _ := project(t)
	n := 0
	var prompts []string
	newModelServer(t, func(r chatRequest) answer {
		if isReview(r) {
			n++
			return answer{text: fmt.Sprintf(`{"decision": "REJECT", "score": 10, "issues": [], "feedback_for_agent": ["objection %d, first", "objection %d, second"]}`, n, n)}
		}
		if r.answers() == 0 {
			prompts = append(prompts, r.text("user"))
		}
		return writes(func(int, string) []answer { return []answer{fileOf("a.txt", fmt.Sprintf("green %d\n", n))} })(r)
	})
	h := open(t, host.Options{Workspace: ws, Dir: filepath.Join(t.TempDir(), ".sentinel"), Set: map[string]string{"tickets.reviewDelay": "0s", "tickets.review": "on"}})
	must(t, h, "ticket/create", wantsGreen, nil)
	get := func() reviewedTicket {
		t.Helper()
		var out struct{ Ticket reviewedTicket }
		must(t, h, "ticket/get", `{"id": "T-1"}`, &out)
		return out.Ticket
	}
	for i := range 3 {
		if f := forge(t, h, ws); f.Worked[0].State != "in_review" {
			t.Fatalf("worked %+v", f.Worked)
		}
		review(t, h, ws, nil)
		got := get()
		if want := map[bool]string{true: "ready", false: "on_hold"}[i < 2]; got.State != want || got.RejectionCount != i+1 {
			t.Fatalf("behind rejection %d: %+v", i+1, got)
		}
	}
	got := get()
	if got.HoldCode != "sentinel_max_retries" || got.HoldReason != "Sentinel rejected after max retries" || got.Retries["review"] != 2 || len(got.Retries) != 1 {
		t.Errorf("on hold: %+v", got)
	}
	for i, prompt := range prompts {
		for k := range 3 {
			for _, item := range []string{"first", "second"} {
				if text := fmt.Sprintf("objection %d, %s", k+1, item); strings.Contains(prompt, text) != (k < i) {
					t.Errorf("attempt %d: %q is in the prompt: %v", i+1, text, k >= i)
				}
			}
		}
	}
	if len(prompts) != 3 {
		t.Errorf("%d prompts", len(prompts))
	}
	var inbox struct {
		Entries []struct{ ID, Prompt string }
	}
	must(t, h, "inbox/list", `{}`, &inbox)
	if len(inbox.Entries) != 1 || inbox.Entries[0].Prompt != got.HoldReason {
		t.Errorf("inbox %+v", inbox)
	}
	must(t, h, "ticket/decide", `{"id": "T-1", "action": "release", "comment": "a last time"}`, nil)
	if got := get(); got.State != "ready" || len(got.Retries) != 0 {
		t.Errorf("released: %+v", got)
	}
}

// The effect of a learned rule is counted when it is known what became of the work: not while
// it waits for its review, as success when the ticket is done, and as failure when the review
// rejects it. The claims of reviewers are offered none.
func TestRulesAreCountedBehindTheReview(t *testing.T) {
	d := newReviewDesk(t, func(r chatRequest) answer {
		return answer{text: map[string]string{"T-1": approves, "T-2": rejects}[under(r)]}
	}, nil, nil)
	must(t, d.h, "ticket/add-rule", `{"text": "say green"}`, nil)
	counts := func() (offered, succeeded, failed int) {
		t.Helper()
		var out struct {
			Rules []struct{ Offered, Succeeded, Failed int }
		}
		must(t, d.h, "ticket/rules", `{}`, &out)
		if len(out.Rules) == 0 {
			t.Fatal("no rule")
		}
		return out.Rules[0].Offered, out.Rules[0].Succeeded, out.Rules[0].Failed
	}
	d.propose(green, false)
	d.proposeAs("T-2", green, false)
	if offered, succeeded, failed := counts(); offered+succeeded+failed != 0 {
		t.Errorf("in review: offered %d, succeeded %d, failed %d", offered, succeeded, failed)
	}
	review(t, d.h, d.ws, nil)
	if offered, succeeded, failed := counts(); d.ticketOf("T-1").State != "done" || d.ticketOf("T-2").State != "ready" || offered != 2 || succeeded != 1 || failed != 1 {
		t.Errorf("behind the review: offered %d, succeeded %d, failed %d", offered, succeeded, failed)
	}
}
