package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

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
