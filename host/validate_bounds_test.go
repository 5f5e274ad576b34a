package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// repeated returns a pattern n times with its number in place of %d.
func repeated(n int, separator, pattern string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = strings.ReplaceAll(pattern, "%d", fmt.Sprint(i))
	}
	return strings.Join(items, separator)
}

// TestValidateManyProblems: a definition with tens of thousands of mistakes is answered with
// the first hundred, with suggestions, and one line for the others.
func TestValidateManyProblems(t *testing.T) {
	h := open(t, environment())
	for name, c := range map[string]struct {
		steps, first string
		more         int
	}{
		"tools":      {`{"type":"set","values":{"x":"$none"}},{"type":"llm","model":"$m","prompt":"x","tools":[` + repeated(60_000, ",", `"code/reed%d"`) + `]}`, `did you mean "code/read"?`, 0},
		"commands":   {repeated(3000, ",", `{"type":"command","command":"code/reed%d"}`), `did you mean "code/read"?`, 2900},
		"references": {`{"type":"set","values":{"result":"` + repeated(15_000, " ", "$resul.x%d") + `"}}`, `did you mean "$result"?`, 0},
	} {
		valid, lines := validated(t, h, `{"name":"n","steps":[`+c.steps+`]}`, nil)
		if last := lines[len(lines)-1]; valid || len(lines) != sentinels.MaxProblems+1 || !strings.Contains(last, "more problems") ||
			c.more > 0 && !strings.HasPrefix(last, fmt.Sprintf("and %d more problems", c.more)) {
			t.Errorf("%s: valid %v, %d problems, the last %s", name, valid, len(lines), last)
		}
		hinted := 0
		for _, line := range lines {
			if strings.Contains(line, c.first) {
				hinted++
			}
		}
		if hinted < 10 {
			t.Errorf("%s: only %d of the problems shown have a suggestion; the first is %s", name, hinted, lines[0])
		}
	}
	// What is refused for such a text says no more.
	in, err := json.Marshal(map[string]string{"definition": `{"name":"n","steps":[` + repeated(3000, ",", `{"type":"command","command":"code/reed%d"}`) + `]}`})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = h.Call(t.Context(), "sentinel/create", in); err == nil || len(err.Error()) > 64<<10 {
		t.Errorf("create: %.300v", err)
	}
}

// TestValidateWarningsHideNoError: errors are shown before warnings, and a text whose check
// stops at a bound is not valid.
func TestValidateWarningsHideNoError(t *testing.T) {
	h := open(t, environment())
	valid, lines := validated(t, h, `{"name":"n","tools":[`+repeated(500, ",", `"no/x%d"`)+`],"steps":[{"type":"command","command":"code/reed"}]}`, nil)
	if valid || !strings.Contains(lines[len(lines)-2], "code/reed") || !strings.HasPrefix(lines[len(lines)-1], "warning and 401 more problems") {
		t.Errorf("valid %v, the last problems are %s", valid, lines[len(lines)-2:])
	}
	valid, lines = validated(t, h, `{"name":"n","tools":[`+repeated(60_000, ",", `"no/x%d"`)+`],"steps":[{"type":"set","values":{"x":1}}]}`, nil)
	if valid || !strings.Contains(strings.Join(lines, "\n"), "there are more than 10000 problems") {
		t.Errorf("60,000 warnings: valid %v, the last problems are %s", valid, lines[len(lines)-2:])
	}
}

// TestValidateEndsWithCaller: a check whose caller is gone ends with the error of its context.
func TestValidateEndsWithCaller(t *testing.T) {
	h := open(t, environment())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	def, problems := h.Runtime().Inspect(ctx, []byte(`{"name":"n","steps":[`+repeated(100, ",", `{"type":"command","command":"code/reed%d"}`)+`]}`), "n.json")
	if def == nil || len(problems) > 0 {
		t.Errorf("a check without a caller found %d problems", len(problems))
	}
	in := json.RawMessage(`{"definition":{"name":"n","steps":[]}}`)
	if _, err := h.Call(ctx, "sentinel/validate", in); err == nil || !strings.Contains(err.Error(), "context canceled") {
		t.Errorf("validate for a caller that is gone: %v", err)
	}
}

// TestChildrenAreReadForTheCaller: the file of a child is read with the rights of the caller at every command, as the
// file itself is, and one that is missing or elsewhere is a mistake of the definition.
func TestChildrenAreReadForTheCaller(t *testing.T) {
	ws := t.TempDir()
	h := open(t, host.Options{Workspace: ws})
	child := func(ref string) string {
		return fmt.Sprintf(`{"id":"parent","name":"parent","steps":[{"type":"sentinel","definition":{"$ref":%q}}]}`, ref)
	}
	for name, text := range map[string]string{
		"credentials.json": `{"name":["AKIA-VALUE-1"],"steps":"sk-live-VALUE-2"}`, "open.json": `{"id":"open","name":"open","steps":[]}`,
		"secret.json": child("./credentials.json"), "plain.json": child("./open.json"), "none.json": child("./absent.json"), "out.json": child("./link.json"),
	} {
		if err := os.WriteFile(filepath.Join(ws, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(ws, "link.json")); err != nil {
		t.Skip("symbolic links:", err)
	}
	as := func(by command.By, name, file string) (string, error) {
		raw, err := h.CallAs(t.Context(), &command.Call{
			Command: name, Params: json.RawMessage(fmt.Sprintf(`{"file":%q}`, file)), By: by, As: "ci", Workspace: ws, Attempt: 1,
			Tools: []string{"sentinel/validate", "sentinel/create", "sentinel/start", "sentinel/load"},
		})
		return string(raw), err
	}
	for _, by := range []command.By{command.ByAgent, command.ByModel} {
		for _, name := range []string{"sentinel/validate", "sentinel/create", "sentinel/start"} {
			got, err := as(by, name, "secret.json")
			if abi.CodeOf(err) != abi.Denied || strings.Contains(got+err.Error(), "VALUE") {
				t.Errorf("%s %s: %s, %v", by, name, got, err)
			}
		}
		if got, err := as(by, "sentinel/validate", "plain.json"); err != nil || !strings.Contains(got, `"valid":true`) {
			t.Errorf("%s: a child that may be read: %s, %v", by, got, err)
		}
	}
	for file, want := range map[string]string{"none.json": "absent.json", "out.json": "link.json"} {
		if got, err := as(command.ByUser, "sentinel/validate", file); err != nil || !strings.Contains(got, `"valid":false`) || !strings.Contains(got, want) {
			t.Errorf("validate %s: %s, %v", file, got, err)
		}
		if _, err := as(command.ByUser, "sentinel/start", file); abi.CodeOf(err) != abi.BadFields || !strings.Contains(err.Error(), want) {
			t.Errorf("start %s: %v", file, err)
		}
	}
}

// TestChildrenAreBounded: what one call decodes beside a definition has a bound in number and bytes, by files and by
// parameters, counts for the share of the caller, and ends with it.
func TestChildrenAreBounded(t *testing.T) {
	ws := t.TempDir()
	h := open(t, host.Options{Workspace: ws})
	one := func(i int, filler string) string {
		return fmt.Sprintf(`{"id":"m%d","name":"m","variables":{%s},"steps":[{"type":"sentinel","definition":{"$ref":"m%d"}}]}`, i, filler, i+1)
	}
	call := func(ctx context.Context, params any, charge func(int64) error) error {
		raw, err := json.Marshal(params)
		if err != nil {
			t.Fatal(err)
		}
		_, err = h.CallAs(ctx, &command.Call{Command: "sentinel/validate", Params: raw, By: command.ByAgent, As: "ci", Workspace: ws, Attempt: 1, Charge: charge})
		return err
	}
	many := map[string]json.RawMessage{}
	for i := range 501 {
		many[fmt.Sprint("m", i+1)] = json.RawMessage(one(i+1, ""))
	}
	given := map[string]any{"definition": json.RawMessage(one(0, "")), "definitions": many}
	if err := call(t.Context(), given, nil); abi.CodeOf(err) != abi.Limit {
		t.Errorf("501 definitions: %v", err)
	}
	delete(many, "m501")
	if err := call(t.Context(), given, nil); err != nil {
		t.Errorf("500 definitions: %v", err)
	}
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the caller has gone"))
	if err := call(gone, given, nil); err == nil {
		t.Error("definitions are decoded for a caller who has gone")
	}
	filler := repeated(20, ",", `"v%d":"`+strings.Repeat("x", 45_000)+`"`)
	for i := range 20 {
		if err := os.WriteFile(filepath.Join(ws, fmt.Sprintf("m%d.json", i)), []byte(one(i, filler)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var counted int64
	err := call(t.Context(), map[string]any{"file": "m0.json"}, func(bytes int64) error {
		counted += bytes
		return nil
	})
	if abi.CodeOf(err) != abi.Limit || counted < 16<<20 || counted > 40<<20 {
		t.Errorf("18 MB of files: %v, %d bytes are counted", err, counted)
	}
}

// slowCondition returns a condition whose check takes hundredths of a second; no two of them are the same.
func slowCondition(i int) string {
	return fmt.Sprintf(`{"type":"condition","check":"%s%d%s","then":[]}`, strings.Repeat("((x=", 12), i, strings.Repeat(")=>1)", 12))
}

// TestChecksOfConditionsEnd: the conditions of one definition, and of all that an agent gives at once, have a bound of
// processor time. What is behind it is an error and never taken for checked.
func TestChecksOfConditionsEnd(t *testing.T) {
	h := open(t, environment())
	steps := make([]string, 150)
	for i := range steps {
		steps[i] = slowCondition(i)
	}
	valid, lines := validated(t, h, `{"name":"n","steps":[`+strings.Join(steps, ",")+`]}`, nil)
	unchecked := slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return !strings.Contains(line, "not checked") })
	if valid || len(unchecked) != 1 || strings.Contains(unchecked[0], "steps[0].") || !strings.Contains(unchecked[0], "2s of a processor") {
		t.Errorf("150 slow conditions: valid %v, %q", valid, lines)
	}
	agent := func(name string, params any) (string, error) {
		raw, err := json.Marshal(params)
		if err != nil {
			t.Fatal(err)
		}
		got, err := h.CallAs(t.Context(), &command.Call{Command: name, Params: raw, By: command.ByAgent, As: "ci", Workspace: t.TempDir(), Attempt: 1})
		return string(got), err
	}
	// Each has a tenth of the time.
	given := map[string]json.RawMessage{}
	var bundled []string
	for i := range 30 {
		text := fmt.Sprintf(`{"id":"m%d","name":"m","steps":[%s]}`, i, strings.Join([]string{
			slowCondition(1000 + 5*i), slowCondition(1001 + 5*i), slowCondition(1002 + 5*i), slowCondition(1003 + 5*i), slowCondition(1004 + 5*i),
		}, ","))
		given[fmt.Sprint("m", i)] = json.RawMessage(text)
		bundled = append(bundled, fmt.Sprintf(`{"sentinelId":"m%d","definition":%s}`, i, strings.ReplaceAll(text, "(x=1", "(x=2")))
	}
	if got, err := agent("sentinel/validate", map[string]any{"definition": json.RawMessage(`{"name":"n","steps":[]}`), "definitions": given}); err != nil || !strings.Contains(got, `"valid":false`) || !strings.Contains(got, "not checked") {
		t.Errorf("30 definitions beside one: %.300s, %.300v", got, err)
	}
	bundle := json.RawMessage(`{"format":1,"sentinels":[` + strings.Join(bundled, ",") + `]}`)
	if got, err := agent("sentinel/import", map[string]any{"bundle": bundle}); err == nil || !strings.Contains(err.Error(), "not checked") {
		t.Errorf("a bundle of 30 definitions: %.300s, %.300v", got, err)
	}
}
