package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/role"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// errorKit returns a plugin whose error classifier has this function as its run.
func errorKit(name, run string) string { return errorKits(name, name+"_errors", run) }

// errorKits returns a plugin with error classifiers: a step type and its run, and so on.
func errorKits(name string, runs ...string) string {
	var steps strings.Builder
	for i := 0; i < len(runs); i += 2 {
		fmt.Fprintf(&steps, `%s: {summary: "Knows errors.", fields: {type: "object", properties: {message: {type: "string"}, code: {type: "string"}, source: {type: "string"},
			exitCode: {type: "integer"}}, required: ["message", "source"], additionalProperties: false}, provides: {as: "error_classifier"}, run: %s},`, runs[i], runs[i+1])
	}
	return `sentinel.plugin({name: "` + name + `", version: "1", permissions: [{use: "provide", names: ["error_classifier"], reason: "r"}], steps: {` + steps.String() + `}});`
}

// A logbook keeps the warnings of a host.
type logbook struct {
	slog.Handler
	mu    sync.Mutex
	lines []string
}

func (l *logbook) Enabled(context.Context, slog.Level) bool { return true }

func (l *logbook) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool { fmt.Fprintf(&b, " %s=%v", a.Key, a.Value); return true })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, b.String())
	return nil
}

func (l *logbook) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l *logbook) WithGroup(string) slog.Handler      { return l }

// count returns how many lines contain a text.
func (l *logbook) count(text string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// TestErrorClassifier: a plugin decides the category of errors of steps and of tickets,
// with the limits of the profile, and the journal has it.
func TestErrorClassifier(t *testing.T) {
	r := openRoles(t, errorKit("kit", `(step) => {
		const f = step.fields;
		if (f.message.includes("quota of widgets")) return {category: "api", subcategory: "rate", confidence: 0.9};
		if (f.message.includes("bad widget")) return {category: "syntax"};
		if (f.exitCode === 77) return {category: "context", subcategory: f.source};
		return null;
	}`), host.Options{})
	ask := func(f role.Failure) string {
		c, ok := r.Runtime().ClassifyError(t.Context(), f)
		return fmt.Sprintf("%s/%s %v %v", c.Category, c.Subcategory, c.Confidence, ok)
	}
	if got := ask(role.Failure{Message: "bad widget", Source: role.SourceStep}); got != "/ 0 false" {
		t.Errorf("before it is allowed: %s", got)
	}
	must(t, r.Host, "plugin/allow", `{"name":"kit"}`, nil)
	code := 77
	for want, f := range map[string]role.Failure{
		"api/rate 0.9 true":     {Message: "the quota of widgets is used up", Source: role.SourceStep},
		"syntax/general 1 true": {Message: "bad widget", Code: abi.Plugin, Source: role.SourceTicket},
		"context/step 1 true":   {Message: "x", Source: role.SourceStep, ExitCode: &code},
		"/ 0 false":             {Message: "another", Source: role.SourceOperator},
	} {
		if got := ask(f); got != want {
			t.Errorf("%+v: %s, want %s", f, got, want)
		}
	}
	retries := func(line string) (categories []string) {
		res := r.do(`{"name":"r","steps":[{"type":"shell","command":"` + line + `","onError":{"retry":{"baseDelayMs":1,"maxDelayMs":1}}}]}`)
		trace, err := r.Runtime().Trace(res.Run)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range trace.Iterations[0].Steps[0].Attempts {
			if a.Category != "" {
				categories = append(categories, a.Category)
			}
		}
		return categories
	}
	// The table takes a failed command for runtime, three retries.
	for line, want := range map[string]string{
		`echo bad widget; exit 1`: "[]", `exit 77`: "[context]", `echo other; exit 1`: "[runtime runtime runtime]",
		`echo quota of widgets; exit 1`: "[api api api api api api api]",
	} {
		if got := fmt.Sprint(retries(line)); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	// $retry has the category that was decided.
	res := r.do(`{"name":"r","steps":[{"type":"shell","command":"echo $retry.category > category; exit 77","onError":{"retry":{"baseDelayMs":1}}}]}`)
	if text, err := os.ReadFile(filepath.Join(r.workspace, "category")); err != nil || strings.TrimSpace(string(text)) != "context" {
		t.Errorf("$retry.category is %q; %v %v", text, err, res.Error)
	}
	// Tickets, with the counts of their profile.
	must(t, r.Host, "ticket/create", `{"title":"a"}`, nil)
	var claimed struct {
		Token  uint64
		Ticket struct{ ID string }
	}
	must(t, r.Host, "ticket/claim", `{}`, &claimed)
	var out struct {
		OnHold   bool
		Strategy struct {
			ErrorCategory string
			MaxRetries    int
		}
	}
	must(t, r.Host, "ticket/fail", map[string]any{"id": claimed.Ticket.ID, "token": claimed.Token, "error": "a bad widget"}, &out)
	if !out.OnHold || out.Strategy.ErrorCategory != "syntax" || out.Strategy.MaxRetries != 0 {
		t.Errorf("ticket: %+v", out)
	}
}

// TestErrorClassifierOrder: classifiers are asked in the order of the names of their
// plugins, and those that fail count as not knowing, with one warning each.
func TestErrorClassifierOrder(t *testing.T) {
	faults := map[string]string{
		"a_throws": `() => { throw new Error("no"); }`, "a_category": `() => ({category: "weather"})`, "a_text": `() => "api"`, "a_list": `() => [1]`,
		"a_calls": `(step, ctx) => ({category: ctx.now().iso})`,
	}
	if !testing.Short() { // these take seconds
		faults["a_large"] = `() => ({category: "api", more: "x".repeat(10 << 20)})`
		faults["a_alloc"] = `() => { const all = []; for (;;) all.push(new ArrayBuffer(1 << 20)); }`
	}
	runs := []string{}
	for _, name := range slices.Sorted(maps.Keys(faults)) {
		runs = append(runs, name, faults[name])
	}
	book := &logbook{}
	r := openRoles(t, errorKits("kit", append(runs, "kit_errors", `() => ({category: "logic", subcategory: "kit"})`)...), host.Options{Logger: slog.New(book)})
	ask := func() string {
		c, _ := r.Runtime().ClassifyError(t.Context(), role.Failure{Message: "x", Source: role.SourceStep})
		return string(c.Category) + "/" + c.Subcategory
	}
	must(t, r.Host, "plugin/allow", `{"name":"kit"}`, nil)
	for range 3 {
		if got := ask(); got != "logic/kit" {
			t.Errorf("%s", got)
		}
	}
	for name := range faults {
		if n := book.count("counts as not knowing plugin=kit stepType=" + name); n != 1 {
			t.Errorf("%s: %d warnings: %v", name, n, book.lines)
		}
	}
	for _, next := range []struct{ name, want string }{{"zeta", "logic/kit"}, {"alpha", "timeout/general"}} {
		module := jsPlugin(t, errorKit(next.name, `() => ({category: "timeout"})`))
		_, err := r.Runtime().LoadPlugin(t.Context(), plugin.Source{Name: next.name + ".wasm", Wasm: func() ([]byte, error) { return module, nil }})
		if abi.CodeOf(err) != abi.Denied {
			t.Fatal(err)
		}
		must(t, r.Host, "plugin/allow", `{"name":"`+next.name+`"}`, nil)
		if got := ask(); got != next.want {
			t.Errorf("with %s: %s", next.name, got)
		}
	}
}

// TestErrorClassifierThatLoops: it costs its time limit three times, and is then not asked
// for a while.
func TestErrorClassifierThatLoops(t *testing.T) {
	if testing.Short() {
		t.Skip("takes three times the time limit of a classifier; run without -short")
	}
	book := &logbook{}
	r := openRoles(t, errorKit("kit", `() => { for (;;); }`), host.Options{Logger: slog.New(book)})
	must(t, r.Host, "plugin/allow", `{"name":"kit"}`, nil)
	for range 10 {
		if _, ok := r.Runtime().ClassifyError(t.Context(), role.Failure{Message: "x", Source: role.SourceStep}); ok {
			t.Error("it answered")
		}
	}
	if n := book.count("counts as not knowing"); n != 1 {
		t.Errorf("%d warnings", n)
	}
	output, err := r.Runtime().Evaluate(t.Context(), abi.RoleErrorClassifier, "kit_errors", json.RawMessage(`{"message":"x","source":"step"}`))
	if abi.CodeOf(err) != abi.Timeout {
		t.Errorf("%s %v", output, err)
	}
}

// TestEvaluateRefuses: what is not an active pure role is not evaluated.
func TestEvaluateRefuses(t *testing.T) {
	r := openRoles(t, kit, host.Options{})
	must(t, r.Host, "plugin/allow", `{"name":"kit"}`, nil)
	for name, want := range map[sentinels.StepType]abi.Code{"kit_shout": abi.NotFound, "shell": abi.NotFound, "no_such": abi.NotFound} {
		if _, err := r.Runtime().Evaluate(t.Context(), abi.RoleErrorClassifier, name, json.RawMessage(`{}`)); abi.CodeOf(err) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := r.Runtime().Evaluate(t.Context(), abi.RoleCommand, "kit_shout", json.RawMessage(`{"text":"a"}`)); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("a command: %v", err)
	}
}
