package run

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/client"
)

const schema = `{"type":"object","properties":{"path":{"type":"string"},"n":{"type":"integer"},"on":{"type":"boolean"},
	"any":{},"list":{"type":["null","array"]},"either":{"type":["string","number"]}},"required":["path"],"additionalProperties":false}`

// parameters returns the parameters that a command line gives to a command.
func parameters(args ...string) ([]byte, error) {
	return verbs{&app.App{}}.params(client.Command{Name: "c", Input: []byte(schema)}, pflag.NewFlagSet("", pflag.ContinueOnError), args)
}

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
		got, err := parameters(strings.Fields(tt.args)...)
		if (err != nil) != (tt.want == "") || string(got) != tt.want {
			t.Errorf("Params(%s) = %s, %v; want %s", tt.args, got, err, tt.want)
		}
		if err != nil && app.ExitCode(err) != app.ExitUsage {
			t.Errorf("Params(%s): exit code %d", tt.args, app.ExitCode(err))
		}
	}
}

// Whatever is typed, the parameters are a JSON object or there is an error.
func FuzzParams(f *testing.F) {
	f.Add("--path=a", "--on", "--json", `{"x":1}`)
	f.Add("--n", "1e9", "--either", "-")
	f.Add("--list=[", "--any=", "", "--json=null")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		out, err := parameters(a, b, c, d)
		if err != nil {
			return
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal(out, &object); err != nil || object == nil {
			t.Fatalf("%q: %v", out, err)
		}
	})
}
