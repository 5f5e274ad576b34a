//go:build unix

package shell_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/shell"
)

// Specification: "results have stdout, stderr, output (both, interleaved as far as two
// pipes allow), text (stdout without the last newline; what $r is in text) and json
// (stdout when it is JSON)."
func TestShellResultHasTheStreamsTextAndJSON(t *testing.T) {
	b := newBench(t, shell.Options{})
	for _, tt := range []struct{ command, stdout, stderr, output, text, json string }{
		{`echo out; echo problem >&2; exit 3`, "out\n", "problem\n", "", "out", ""},
		{`echo 1; sleep 0.2; echo 2 >&2; sleep 0.2; echo 3`, "1\n3\n", "2\n", "1\n2\n3\n", "1\n3", ""},
		{`printf 5`, "5", "", "5\n", "5", "5"},
		{`printf 'a\n\n'`, "a\n\n", "", "a\n\n", "a\n", ""},
		{`printf '{"items": [1,\n 2]}\n'`, "{\"items\": [1,\n 2]}\n", "", "{\"items\": [1,\n 2]}\n", "{\"items\": [1,\n 2]}", `{"items":[1,2]}`},
		{`printf 'null\r\n'`, "null\n", "", "null\n", "null", "null"},
		{`printf '"a"'; echo '{"b": 1}' >&2`, `"a"`, "{\"b\": 1}\n", "", `"a"`, `"a"`},
		{`echo '{"a": 1, "a": 2}'`, "{\"a\": 1, \"a\": 2}\n", "", "", `{"a": 1, "a": 2}`, ""},
		{`printf '1\n2\n'`, "1\n2\n", "", "", "1\n2", ""},
		{`true`, "", "", "", "", ""},
		{`printf a; sleep 0.2; printf b >&2; sleep 0.2; printf c`, "ac", "b", "", "ac", ""},
	} {
		got := b.do("code/shell/execute", params{"command": tt.command})
		if got.Stdout == nil || got.Stderr == nil {
			t.Fatalf("%s: %+v", tt.command, got)
		}
		if diff := cmp.Diff([]string{tt.stdout, tt.stderr, tt.text, tt.json}, []string{*got.Stdout, *got.Stderr, got.Text, string(got.JSON)}); diff != "" {
			t.Errorf("%s: stdout, stderr, text, json (-want +got):\n%s", tt.command, diff)
		}
		if tt.output != "" && got.Output != tt.output {
			t.Errorf("%s: output %q, want %q", tt.command, got.Output, tt.output)
		}
		if strings.Count(got.Output, "\n") < strings.Count(tt.stdout+tt.stderr, "\n") {
			t.Errorf("%s: output %q has not all lines", tt.command, got.Output)
		}
	}
}

// TestShellResultIsBounded holds an answer to its limit, whatever the program writes
// (call checks the size). What a step reads is whole or says that it is not.
func TestShellResultIsBounded(t *testing.T) {
	b := newBench(t, shell.Options{})
	list := func(n int) string {
		return fmt.Sprintf(`printf '["'; head -c %d /dev/zero | tr '\0' x; printf '"]'`, n)
	}
	for _, tt := range []struct {
		command string
		size    int // of stdout
		json    bool
		whole   bool
	}{
		{list(39 << 10), 39<<10 + 4, true, true},
		{list(900 << 10), 900<<10 + 4, true, true},
		{list(3 << 20), 3<<20 + 4, false, true},
		{`seq -f 'file-%05.0f.txt' 1 20000`, 20000 * 15, false, true},
		{`head -c 9000000 /dev/zero | tr '\0' '<'`, 0, false, false},
		{`head -c 300000 /dev/zero | tr '\0' '"' >&2`, 0, false, false},
	} {
		for _, rules := range [][]shell.Rule{nil, {{Pattern: "."}}} {
			got := b.do("code/shell/execute", params{"command": tt.command, "rules": append([]shell.Rule{}, rules...)})
			if got.Truncated == tt.whole || (got.JSON != nil) != tt.json {
				t.Errorf("%.60s, %d rules: truncated %v, json of %d bytes", tt.command, len(rules), got.Truncated, len(got.JSON))
			}
			if tt.whole && (len(*got.Stdout) != tt.size || strings.TrimSuffix(*got.Stdout, "\n") != got.Text) {
				t.Errorf("%.60s: %d bytes of stdout, %d of text, want %d", tt.command, len(*got.Stdout), len(got.Text), tt.size)
			}
			if len(got.Output) > 80<<10 {
				t.Errorf("%.60s: output, which is for people, has %d bytes", tt.command, len(got.Output))
			}
		}
	}
	// The end of a stream is where a failure is explained.
	got := b.do("code/shell/execute", params{"command": `seq -f 'e%.0f' 1 60000 >&2; exit 1`})
	if e := *got.Stderr; !strings.HasPrefix(e, "e1\ne2\n") || !strings.HasSuffix(e, "e59999\ne60000\n") || !strings.Contains(e, "lines dropped]\n") {
		t.Errorf("stderr of %d bytes: %.20q ... %q", len(e), e, e[len(e)-20:])
	}
}

// TestShellResultOfAModel has the text once.
func TestShellResultOfAModel(t *testing.T) {
	b := newBench(t, shell.Options{})
	p := params{"command": "echo out; echo problem >&2; exit 3"}
	got, err := b.call(t.Context(), "code/shell/execute", command.Call{By: command.ByModel, Run: "run-1", Tools: []string{"code/shell/execute"}}, p)
	if err != nil || got.Stdout != nil || got.Stderr != nil || got.Text != "" || !strings.Contains(got.Output, "problem\n") || *got.ExitCode != 3 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestShellResultSchema checks that the schema of the result documents every part.
func TestShellResultSchema(t *testing.T) {
	b := newBench(t, shell.Options{})
	c, _ := b.reg.Lookup("code/shell/execute")
	var schema struct {
		Properties map[string]struct{ Description string }
	}
	if err := json.Unmarshal(c.Output(), &schema); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"stdout", "stderr", "output", "text", "json", "exitCode"} {
		if schema.Properties[name].Description == "" {
			t.Errorf("%s is not documented: %s", name, c.Output())
		}
	}
}
