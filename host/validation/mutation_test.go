package validation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/validation"
	"github.com/sentinel-runtime/sentinel/plugins"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
	"github.com/sentinel-runtime/sentinel/triggers/standard"
)

func TestMain(m *testing.M) {
	runtime.ServeChild()
	os.Exit(m.Run())
}

// A harness validates definitions as a host does, and runs them with stubs: commands check
// their parameters and return what their schemas say, a model says one word, and nothing
// reaches a process, a file or a network.
type harness struct {
	rt        *runtime.Runtime
	generator *generator // without choices: check copies it
	commands  []command.Command
	workspace string
	moment    time.Duration // how long a run is waited for
}

func newHarness(t testing.TB) *harness {
	t.Helper()
	workspace := t.TempDir()
	cache, _ := host.CacheDir(os.Getenv)
	env := map[string]string{"OLLAMA_HOST": "127.0.0.1:1", "OPENAI_API_KEY": "sk-test-0123456789abcdef"}
	h, err := host.Open(t.Context(), host.Options{
		Workspace: workspace, CacheDir: cache, Getenv: func(name string) string { return env[name] }, Environ: func() []string { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	hs := &harness{commands: h.Commands().List(), workspace: workspace, moment: 500 * time.Millisecond}
	registry, err := command.NewRegistry()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range hs.commands {
		result := sample(c.Output())
		stub := command.NewDynamic(c.Name, c.Summary, c.Input(), c.Output(), command.Options{
			Effect: c.Effect, Private: c.Private, ByName: c.ByName, Shell: c.Shell, Raw: c.Raw, Aliases: c.Aliases,
		}, func(context.Context, *command.Call) (json.RawMessage, error) { return result, nil })
		if err := registry.Add(stub); err != nil {
			t.Fatal(err)
		}
	}
	hs.rt, err = runtime.Open(t.Context(), runtime.Options{
		CacheDir: cache, Workspace: workspace,
		Plugins:  []plugin.Source{{Name: "builtin", Wasm: plugins.Builtin, Manifest: plugins.Manifest, Trusted: true}},
		Commands: stubCommands{registry}, Models: stubModel{}, Executions: stubExecutions{}, Contexts: stubContexts{},
		Checks: validation.Checker{
			Commands:  func() *command.Registry { return registry },
			Stored:    func(sentinels.ID) bool { return false },
			EventData: standard.Set().EventData,
		},
		Triggers: standard.Set(),
		Limits:   runtime.Limits{StepTimeout: 5 * time.Second, Steps: 200},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := hs.rt.Close(); err != nil {
			t.Error(err)
		}
	})
	callable := slices.DeleteFunc(slices.Clone(hs.commands), func(c command.Command) bool { return c.Effect == command.Decides }) // of steps
	if hs.generator, err = newGenerator(h.Schema(), hs.rt.Types(), callable); err != nil {
		t.Fatal(err)
	}
	return hs
}

// sample returns a value with all that a schema of an output has.
func sample(schema json.RawMessage) json.RawMessage {
	var s object
	_ = json.Unmarshal(schema, &s) // the registry compiles it
	text, _ := json.Marshal(sampleOf(s, 0))
	return text
}

func sampleOf(schema any, depth int) any {
	s, _ := schema.(object)
	kind, _ := s["type"].(string)
	if list, ok := s["type"].([]any); ok {
		kind, _ = list[0].(string)
	}
	switch list, _ := s["enum"].([]any); {
	case len(list) > 0:
		return list[0]
	case depth > 6:
		return nil
	}
	switch kind {
	case "integer", "number":
		return 0
	case "boolean":
		return true
	case "string":
		return "text"
	case "array":
		return []any{sampleOf(s["items"], depth+1)}
	case "object", "":
		out := object{}
		properties, _ := s["properties"].(object)
		for name, property := range properties {
			out[name] = sampleOf(property, depth+1)
		}
		return out
	}
	return nil
}

type stubCommands struct{ *command.Registry }

func (s stubCommands) Lookup(name string) (runtime.CommandInfo, bool) {
	c, ok := s.Registry.Lookup(name)
	return runtime.CommandInfo{Name: c.Name, Summary: c.Summary, Input: c.Input(), ReadOnly: true, Shell: c.Shell, Raw: c.Raw, Private: c.Private, ByName: c.ByName}, ok
}

func (s stubCommands) Tools([]string) []runtime.CommandInfo { return nil }

func (s stubCommands) Call(ctx context.Context, call runtime.CommandCall) (json.RawMessage, error) {
	return s.Registry.Call(ctx, &command.Call{Command: call.Command, Params: call.Params, By: command.ByStep, Workspace: call.Workspace})
}

type stubModel struct{}

func (stubModel) Quote(context.Context, sentinels.Turn) (runtime.ModelQuote, error) {
	return runtime.ModelQuote{Provider: "stub", Model: "stub", Priced: true, Worst: sentinels.Usage{InputTokens: 1, OutputTokens: 1}}, nil
}

func (stubModel) Turn(context.Context, sentinels.Turn, func(string)) (sentinels.Reply, error) {
	return sentinels.Reply{Text: `{"word": 1}`, JSON: json.RawMessage(`{"word": 1}`), Finish: "stop", Provider: "stub", Model: "stub", Usage: sentinels.Usage{InputTokens: 1, OutputTokens: 1}}, nil
}

type stubExecutions struct{}

func (stubExecutions) Watch(context.Context, sentinels.RunID, json.RawMessage) (json.RawMessage, error) {
	return json.RawMessage(`{"executionId":"e","lines":[],"text":"","finished":true,"exitCode":0,"dropped":0,"from":0,"cursor":0}`), nil
}
func (stubExecutions) FileStart(context.Context, runtime.FileWatch) (string, error) { return "0", nil }
func (stubExecutions) WatchFile(context.Context, runtime.FileWatch) (json.RawMessage, error) {
	return json.RawMessage(`{"file":"f","lines":[],"text":"","finished":true,"timedOut":false,"dropped":0,"from":"0","position":"0"}`), nil
}
func (stubExecutions) EndBackground(context.Context, sentinels.RunID, func(string) bool) error {
	return nil
}

func (stubExecutions) EndRun(context.Context, sentinels.RunID) error { return nil }
func (stubExecutions) Interrupted(context.Context, sentinels.RunID) ([]runtime.InterruptedExecution, error) {
	return nil, nil
}
func (stubExecutions) Memory(sentinels.RunID) (int64, string) { return 0, "" }

type stubContexts struct{}

func (stubContexts) Build(context.Context, runtime.ContextRequest) (json.RawMessage, error) {
	return json.RawMessage(`{"text":"context"}`), nil
}

// validate is what sentinel/validate does.
func (h *harness) validate(src []byte) (*sentinels.Definition, sentinels.Problems) {
	def, problems := h.rt.Inspect(context.Background(), src, "d.json")
	if def != nil {
		types := h.rt.Types()
		problems = problems.Merge(sentinels.Check(context.Background(), def, types).Locate("d.json", src, types))
	}
	return def, problems
}

// suggests matches what the message or the hint of an unknown name has.
var suggests = regexp.MustCompile(`\| (?:write|leave it out)|did you mean|known: |one of |it has |it takes |want |commands begin with|declare it under|a value has the methods|with the |as a field of the step|actions of other|give a step an`)

// badProblems returns what is wrong with problems: each has a place, a path and a message,
// and an unknown name lists or suggests known ones.
func badProblems(src []byte, problems sentinels.Problems) (bad []string) {
	lines := strings.Count(string(src), "\n") + 1
	for _, p := range problems {
		switch {
		case p.Line < 1 || p.Column < 1 || p.Line > lines:
			bad = append(bad, fmt.Sprintf("no place: %v", p))
		case p.Message == "" || p.Kind == "":
			bad = append(bad, fmt.Sprintf("no message or kind: %v", p))
		case p.Path == "" && p.Kind != sentinels.KindSyntax && p.Kind != sentinels.KindLimit && p.Kind != sentinels.KindMissing:
			bad = append(bad, fmt.Sprintf("no path: %v", p))
		case p.Kind == sentinels.KindUnknown && !suggests.MatchString(p.Message+" | "+p.Hint):
			bad = append(bad, fmt.Sprintf("neither lists nor suggests known names: %v | %s", p, p.Hint))
		}
	}
	return bad
}

// errStill is the error of a run that waits or takes longer than a test should.
var errStill = errors.New("still active")

// run runs a definition for a moment.
func (h *harness) run(ctx context.Context, def *sentinels.Definition) (runtime.Result, error) {
	id, err := h.rt.Start(ctx, def, runtime.StartOptions{Workspace: h.workspace, Event: &sentinels.Event{Name: "test", Data: []byte(`{}`)}})
	if err != nil {
		return runtime.Result{}, err
	}
	short, cancel := context.WithTimeout(ctx, h.moment)
	defer cancel()
	res, err := h.rt.Wait(short, id)
	if err != nil {
		// The end takes as long as what the definition has for `finally`.
		ending, cancel := context.WithTimeout(ctx, h.moment)
		defer cancel()
		err := h.rt.Stop(ending, id)
		if refused := new(abi.Error); errors.As(err, &refused) && refused.Code == abi.Conflict {
			return h.rt.Wait(ending, id) // it has ended by itself meanwhile
		}
		if err != nil && ending.Err() == nil {
			return res, err
		}
		return res, errStill
	}
	return res, nil
}

// missingPart matches the message about a part that is missing of what validate knows. Its
// group is the name of an input.
var missingPart = regexp.MustCompile(`\$(?:inputs\.(\w+)|inputs|steps|run)\b\S*: \$`)

// optional reports whether a start may leave an input without a value.
func optional(def *sentinels.Definition, name string) bool {
	in, ok := def.Inputs[name]
	return ok && in.Default == nil
}

// known returns the reason of FORMAT F12.1 for which the run of a valid definition failed,
// "" if it did not fail or for another reason (F12.2). A field with a reference may be
// refused for its value, which validate does not know.
func known(def *sentinels.Definition, res runtime.Result, err error) string {
	if errors.Is(err, errStill) {
		return ""
	}
	if err != nil {
		return fmt.Sprintf("refused at start: %v", err)
	}
	if res.Status != sentinels.StatusFailed || res.Error.Code != abi.BadFields && res.Error.Code != abi.NotFound {
		return ""
	}
	if m := missingPart.FindStringSubmatch(res.Error.Message); m != nil && !optional(def, m[1]) {
		return "a reference that has no value: " + res.Error.Message
	}
	if res.Step == "" && def.Loop.Max != nil && reference.Contains(string(def.Loop.Max)) {
		return ""
	}
	address := res.Step
	if strings.Contains(res.Error.Message, "branches failed; branch ") {
		// It lists the failures of several steps, which the block around them all contains.
		address, _, _ = strings.Cut(address, ".")
	}
	step, err := def.StepAt(address)
	if err != nil {
		return fmt.Sprintf("no step %q: %v", address, err)
	}
	fields, err := json.Marshal(step)
	if own, _, _ := strings.Cut(res.Error.Field, "."); step.Fields[own] != nil && step.Type != "sentinel" {
		fields = step.Fields[own]
	}
	if err != nil || reference.Contains(string(fields)) || step.Type == "set" { // its values are those of expressions
		return ""
	}
	return fmt.Sprintf("%s %s: %v", step.Type, res.Step, res.Error)
}

// check makes a definition with one mutation, or none, and returns what is wrong.
func (h *harness) check(t testing.TB, data []byte) (report string, valid bool) {
	c := &choices{data}
	g := *h.generator
	g.choices = c
	d := g.definition()
	change := "nothing"
	if c.n(8) > 0 {
		change = mutate(d, c)
	}
	src, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	def, problems := h.validate(src)
	if bad := badProblems(src, problems); len(bad) > 0 {
		return fmt.Sprintf("changed %s:\n%s\n%s", change, strings.Join(bad, "\n"), src), false
	}
	if len(problems.Errors()) > 0 {
		if change == "nothing" {
			return fmt.Sprintf("a definition without a mutation is refused: %v\n%s", problems.Errors(), src), false
		}
		return "", false
	}
	for _, p := range problems {
		if p.Kind == sentinels.KindAbsent {
			return "", false // a start refuses it
		}
	}
	res, err := h.run(t.Context(), def)
	if why := known(def, res, err); why != "" {
		return fmt.Sprintf("changed %s: valid, and the run failed: %s\nvalidate said: %v\n%s", change, why, problems, src), true
	}
	return "", true
}

// TestMutations: "definitions from the schema with one mutation each (wrong type, misspelt
// key, removed field, foreign syntax) ... runs the survivors with stub commands and asserts
// that none fails for a listed reason". SENTINEL_MUTATIONS is the number of definitions, `make soak`
// has 1,500 and `make test` 500, with each kind of mutation dozens of times.
func TestMutations(t *testing.T) {
	n := 1500
	if testing.Short() {
		n = 500
	}
	if text := os.Getenv("SENTINEL_MUTATIONS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	h := newHarness(t)
	var mu sync.Mutex
	survivors, failed := 0, 0
	var wg sync.WaitGroup
	slots := make(chan struct{}, 16) // many of the runs wait
	for seed := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			report, valid := h.check(t, decisions(seed))
			mu.Lock()
			defer mu.Unlock()
			if valid {
				survivors++
			}
			if report != "" {
				if failed++; failed <= 20 {
					t.Errorf("seed %d: %s", seed, report)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d definitions, %d valid, %d failures", n, survivors, failed)
	if survivors < n/4 || survivors > n*3/4 {
		t.Errorf("%d of %d definitions were valid: one of the two halves of the test has too little to do", survivors, n)
	}
}

// decisions returns the choices of a seed.
func decisions(seed int) []byte {
	r := rand.New(rand.NewPCG(uint64(seed), 1))
	data := make([]byte, 400)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}

// FuzzMutations is TestMutations with choices of the fuzzer.
func FuzzMutations(f *testing.F) {
	h := newHarness(f)
	h.moment = 50 * time.Millisecond
	for seed := range 5 {
		f.Add(decisions(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if report, _ := h.check(t, data); report != "" {
			t.Error(report)
		}
	})
}
