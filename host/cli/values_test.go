package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/cli"
)

func TestValueOf(t *testing.T) {
	for _, tt := range []struct{ text, want, json string }{
		{"go build", "string", `"go build"`}, {"12", "string", `"12"`}, {`"12"`, "string", `"\"12\""`},
		{"12", "integer", `12`}, {"many", "integer", `"many"`}, {" [1] ", "", `[1]`}, {"plain", "", `"plain"`}, {"", "", `""`}, {"null", "", `null`},
	} {
		if got, err := cli.ValueOf(tt.text, tt.want); string(got) != tt.json || err != nil {
			t.Errorf("ValueOf(%q, %q) = %s, %v, want %s", tt.text, tt.want, got, err, tt.json)
		}
	}
	for _, text := range []string{`{"a":1,"a":2}`, "1e999", `"\ud800"`} {
		if got, err := cli.ValueOf(text, ""); err == nil {
			t.Errorf("ValueOf(%q) = %s", text, got)
		}
	}
}

const schema = `{"type":"object","properties":{"path":{"type":"string"},"n":{"type":"integer"},"on":{"type":"boolean"},
	"any":{},"list":{"type":["null","array"]},"either":{"type":["string","number"]}},"required":["path"],"additionalProperties":false}`

func TestParams(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"--path=12", `{"path":"12"}`},
		{"--path 12 --n 3 --on", `{"n":3,"on":true,"path":"12"}`},
		{"--on false --on=true", ""}, // twice
		{"--on false", `{"on":false}`},
		{"--on --n=1", `{"n":1,"on":true}`},
		{"--any={} --list=[1,2]", `{"any":{},"list":[1,2]}`},
		{"--either=5 --any=x", `{"any":"x","either":5}`},
		{`--json {"path":"a"} --n=2`, `{"n":2,"path":"a"}`},
		{"--nope=1", ""}, {"path", ""}, {"--n", ""}, {"--json [1]", ""}, {"--json {", ""}, {"--", ""},
	} {
		got, err := cli.Params([]byte(schema), strings.Fields(tt.args)...)
		if (err != nil) != (tt.want == "") || string(got) != tt.want {
			t.Errorf("Params(%s) = %s, %v; want %s", tt.args, got, err, tt.want)
		}
		if err != nil && cli.ExitCode(err) != cli.ExitUsage {
			t.Errorf("Params(%s): exit code %d", tt.args, cli.ExitCode(err))
		}
	}
}

// Whatever is typed, the parameters are a JSON object or there is an error.
func FuzzParams(f *testing.F) {
	f.Add("--path=a", "--on", "--json", `{"x":1}`)
	f.Add("--n", "1e9", "--either", "-")
	f.Add("--list=[", "--any=", "", "--json=null")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		out, err := cli.Params([]byte(schema), a, b, c, d)
		if err != nil {
			return
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal(out, &object); err != nil || object == nil {
			t.Fatalf("%q: %v", out, err)
		}
	})
}

// A line of a log is an event with a name, or none.
func FuzzReadEvent(f *testing.F) {
	f.Add([]byte(`{"event":"step.end","run":"r","durationMs":1.5,"error":{"code":"internal","message":"m"}}`))
	f.Add([]byte(`{"event":""}`))
	f.Add([]byte(`{"event":"x","time":"yesterday"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if e, ok := cli.ReadEvent(line); ok && e.Event == "" {
			t.Fatalf("%q is an event without a name", line)
		}
	})
}
