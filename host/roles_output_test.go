package host_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// outputKit returns a plugin whose output classifiers have these functions as their run.
func outputKit(runs map[string]string) string {
	var steps strings.Builder
	for name, run := range runs {
		fmt.Fprintf(&steps, `kit_%s: {summary: "Knows lines.", fields: {type: "object", properties: {lines: {type: "array"}}, required: ["lines"], additionalProperties: false},
			provides: {as: "output_classifier"}, run: %s},`, name, run)
	}
	return `sentinel.plugin({name: "kit", version: "1", permissions: [{use: "provide", names: ["output_classifier"], reason: "r"}], steps: {` + steps.String() + `}});`
}

// passOrFail calls lines with FAIL errors, with pass successes, and leaves dots out.
var passOrFail = map[string]string{"output": `(step) => ({lines: step.fields.lines.map(({text, stream}) =>
	text.includes("FAIL") ? {classification: "error"} : text.includes("pass") ? {classification: "success", action: "emit"} :
	/^\.+$/.test(text) ? {classification: "info", action: "suppress"} : stream === "stderr" ? {classification: "warning"} : null)})`}

// classes returns the lines of a variable, each with its class.
func classes(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var out struct {
		Lines []struct{ Text, Classification string }
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	var list []string
	for _, l := range out.Lines {
		list = append(list, l.Classification+" "+l.Text)
	}
	return strings.Join(list, "; ")
}

// TestOutputClassifier: rules of commands, of the step watch and of a watched file name a
// classifier of a plugin, among other rules.
func TestOutputClassifier(t *testing.T) {
	r := openRoles(t, outputKit(passOrFail), host.Options{})
	src := `{"name":"a","steps":[{"command":"code/shell/execute","params":{"command":"echo one pass; echo ...; echo FAIL two; echo note three; echo ok; echo low >&2",
		"rules":[{"pattern":"^note","classification":"info"},{"classifier":"kit_output"},{"pattern":"ok","classification":"success"}]},"outputTo":"out"}]}`
	if _, problems := r.Runtime().Decode([]byte(src), "a.json"); len(problems) != 1 || problems[0].Hint != "sentinel plugin allow kit" || problems[0].Path != "steps[0].params.rules[1].classifier" {
		t.Errorf("before it is allowed: %+v", problems)
	}
	must(t, r.Host, "plugin/allow", `{"name":"kit"}`, nil)
	res := r.do(src)
	got := classes(t, res.Variables["out"])
	for _, want := range []string{"success one pass", "error FAIL two", "info note three", "success ok", "warning low"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q; %v", want, got, res.Error)
		}
	}
	if strings.Contains(got, "...") {
		t.Errorf("%q has what is to be suppressed", got)
	}
	// A watch until an error ends with the line, while the program still runs; its rules are those
	// that were set for the execution.
	res = r.do(`{"name":"w","steps":[
		{"command":"code/shell/execute","params":{"command":"echo first pass; sleep 0.3; echo FAIL now; sleep 600","wait":false},"outputTo":"job"},
		{"command":"code/shell/sentinel","params":{"executionId":"$job.executionId","rules":[{"classifier":"kit_output"}]}},
		{"type":"watch","executionId":"$job.executionId","until":"match","outputTo":"match"},
		{"type":"watch","executionId":"$job.executionId","until":"error","rules":[{"classifier":"kit_output"}],"outputTo":"out"}]}`)
	if got := classes(t, res.Variables["match"]); got != "success first pass" {
		t.Errorf("until match: %q; %v", got, res.Error)
	}
	if got := classes(t, res.Variables["out"]); got != "error FAIL now" {
		t.Errorf("until error: %q; %v", got, res.Error)
	}
	// A file that grows.
	write(t, r.workspace, map[string]string{"log": "old FAIL\n"})
	id := r.start(`{"name":"f","steps":[{"type":"watch","file":"log","from":"end","until":"error","rules":[{"classifier":"kit_output"}],"outputTo":"out"}]}`)
	go func() {
		time.Sleep(300 * time.Millisecond)
		f, err := os.OpenFile(filepath.Join(r.workspace, "log"), os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			fmt.Fprint(f, strings.Repeat("pass\n", 1000)+"FAIL at last\nmore\n")
			f.Close()
		}
	}()
	fromFile, err := r.Runtime().Wait(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if got := classes(t, fromFile.Variables["out"]); !strings.HasSuffix(got, "error FAIL at last") {
		t.Errorf("of a file: %.200q; %v", got, fromFile.Error)
	}
}

// TestOutputClassifierProblems: names that nothing has and rules that make no sense are
// refused when they are set, and validate knows them.
func TestOutputClassifierProblems(t *testing.T) {
	r := openRoles(t, outputKit(passOrFail), host.Options{})
	must(t, r.Host, "plugin/allow", `{"name":"kit"}`, nil)
	for rules, want := range map[string]string{
		`[{"classifier":"kit_outputs"}]`:              `did you mean "kit_output"?`,
		`[{"classifier":"shell"}]`:                    "no plugin provides the output_classifier",
		`[{"classifier":"kit_output","pattern":"x"}]`: "stands for pattern, classification and action",
		`[{}]`: "or classifier in its place",
		`[{"classifier":"kit_output","action":"emit"}]`:       "stands for pattern",
		`[{"pattern":"x","classification":"y"}]`:              "must be one of error",
		`[{"classifier":"kit_output"},{"classifier":"nope"}]`: "rules[1].classifier",
	} {
		_, err := r.Call(t.Context(), "code/shell/execute", json.RawMessage(`{"command":"true","rules":`+rules+`}`))
		text := ""
		if e := abi.As(err); e != nil {
			text = e.Field + " " + e.Message + " " + e.Hint
		}
		if !strings.Contains(text, want) {
			t.Errorf("%s: %q, want %q", rules, text, want)
		}
	}
	_, problems := r.Runtime().Decode([]byte(`{"name":"a","steps":[{"type":"watch","executionId":"x","rules":[{"classifier":"kit_outptu"}]}]}`), "a.json")
	if len(problems) != 1 || problems[0].Hint != `did you mean "kit_output"?` {
		t.Errorf("validate: %+v", problems)
	}
}

// TestOutputClassifierFaults: a classifier that fails counts as not knowing, and the lines
// are verbose; later rules still decide. It is logged once.
func TestOutputClassifierFaults(t *testing.T) {
	faults := map[string]string{
		"throws": `() => { throw new Error("no"); }`, "short": `() => ({lines: []})`, "word": `(s) => ({lines: s.fields.lines.map(() => ({classification: "red"}))})`,
	}
	if !testing.Short() { // it takes seconds
		faults["large"] = `(s) => ({lines: s.fields.lines.map(() => ({classification: "x".repeat(10 << 20)}))})`
	}
	book := &logbook{}
	r := openRoles(t, outputKit(faults), host.Options{Logger: slog.New(book)})
	must(t, r.Host, "plugin/allow", `{"name":"kit"}`, nil)
	for name := range faults {
		res := r.do(`{"name":"a","steps":[{"command":"code/shell/execute","params":{"command":"seq 1000","rules":[{"classifier":"kit_` + name + `"},{"pattern":"^77$","classification":"error"}]},"outputTo":"out"}]}`)
		if got := classes(t, res.Variables["out"]); res.Status != sentinels.StatusCompleted || !strings.Contains(got, "error 77; verbose 78") {
			t.Errorf("%s: %s: %.200s %v", name, res.Status, got, res.Error)
		}
		if n := book.count("stepType=kit_" + name); n != 1 {
			t.Errorf("%s: %d warnings", name, n)
		}
	}
}
