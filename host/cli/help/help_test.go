package help

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

var update = flag.Bool("update", false, "rewrite llms.txt")

const llms = "../../../llms.txt"

func TestMain(m *testing.M) {
	runtime.ServeChild()
	os.Exit(m.Run())
}

func open(t *testing.T) *host.Host {
	t.Helper()
	h, err := host.Open(t.Context(), host.Options{Workspace: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

var example = regexp.MustCompile("(?s)```json\n(.*?)```")

// TestTopics: "`sentinel help format|references|expressions|steps|triggers|events|variables|
// retries|budgets|exit-codes|plugins`: one screen each, generated where a source exists,
// each with a tested example". An example is valid without a warning, and its run completes.
func TestTopics(t *testing.T) {
	t.Setenv("HOOK_SECRET", "a secret of the test")
	h := open(t)
	src := newSource(h)
	if err := os.WriteFile(h.Workspace()+"/notes.txt", []byte("TODO: write\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range Topics {
		t.Run(name, func(t *testing.T) {
			text, err := src.topic(name)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(text, "\n"); n > 60 {
				t.Errorf("%d lines are more than a screen", n)
			}
			if strings.Contains(text, "<no value>") {
				t.Error("a part of it has no value")
			}
			found := example.FindAllStringSubmatch(text, -1)
			if len(found) == 0 {
				t.Error("it has no example")
			}
			for _, m := range found {
				def, problems := h.Runtime().Inspect(t.Context(), []byte(m[1]), name+".json")
				if problems = problems.Merge(sentinels.Check(t.Context(), def, h.Runtime().Types())); len(problems) > 0 {
					t.Fatal(problems)
				}
				id, err := h.Runtime().Start(t.Context(), def, runtime.StartOptions{Workspace: h.Workspace(), Event: &sentinels.Event{Name: "build:done", Data: []byte(`{"commit":"c"}`)}})
				if err != nil {
					t.Fatal(err)
				}
				res, err := h.Runtime().Wait(t.Context(), id)
				if err != nil || res.Status != sentinels.StatusCompleted {
					t.Fatalf("%s with %v %v", res.Status, res.Error, err)
				}
			}
		})
	}
}

// TestLLMs: "`llms.txt` and `sentinel help --all` give an AI everything in under 30 KB".
func TestLLMs(t *testing.T) {
	text, err := verbs{&app.App{}}.render(open(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) >= 30<<10 {
		t.Errorf("it has %d bytes", len(text))
	}
	if n := strings.Count(text, "\n## "); n != slices.Index(Topics, "notifications") { // which is for operators, and those behind it say what others do
		t.Errorf("%d of %d topics", n, len(Topics))
	}
	if *update {
		if err := os.WriteFile(llms, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := os.ReadFile(llms)
	if err != nil {
		t.Fatal(err)
	}
	if string(stored) != text {
		t.Error("llms.txt is not what this program says; run make schema")
	}
}

// TestExitCodes: each code of the constants has a meaning, once.
func TestExitCodes(t *testing.T) {
	seen := map[int]bool{}
	for _, c := range app.ExitCodes {
		if c.Meaning == "" || seen[c.Code] {
			t.Errorf("exit code %d", c.Code)
		}
		seen[c.Code] = true
	}
	for _, code := range []int{app.ExitOK, app.ExitFailed, app.ExitUsage, app.ExitInvalid, app.ExitDenied, app.ExitNotFound, app.ExitTimedOut, app.ExitHeld, app.ExitWaiting, app.ExitInterrupt} {
		if !seen[code] {
			t.Errorf("exit code %d has no meaning", code)
		}
	}
}

// TestMentions: "`help WORD` finds by word".
func TestMentions(t *testing.T) {
	for word, want := range map[string]string{"backoff": "sentinel help retries: ", "awk": "sentinel help shell-quoting: ", "Weekdays": "sentinel help cron: | `0 9 * * 1-5` | on weekdays", "exit": "sentinel help exit-codes: Exit codes\n", "nosuchword": "", "a": ""} {
		got, err := mentions(word)
		if err != nil || !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %v\n%s, want %q", word, err, got, want)
		}
	}
}

// TestHelpHasNoClauses: a reader of the program does not have the pages whose clauses have
// numbers, so no help, schema or description of a command cites one.
func TestHelpHasNoClauses(t *testing.T) {
	h := open(t)
	src := newSource(h)
	clause := regexp.MustCompile(`\b[FT][1-9][0-9]?(\.[0-9]+)?\b|FORMAT\.md|TRIGGERS\.md`)
	check := func(what, text string) {
		for _, at := range clause.FindAllStringIndex(text, -1) {
			t.Errorf("%s cites a clause: ...%s", what, text[max(0, at[0]-60):min(len(text), at[1]+20)])
		}
	}
	for _, name := range Topics {
		text, err := src.topic(name)
		if err != nil {
			t.Fatal(err)
		}
		check("help "+name, text)
	}
	check("schema", string(h.Schema()))
	for _, c := range h.Commands().List() {
		check(c.Name, c.Summary+string(c.Input())+string(c.Output()))
	}
	all, err := os.ReadFile(llms)
	if err != nil {
		t.Fatal(err)
	}
	check("help --all", string(all))
}
