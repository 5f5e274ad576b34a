package command_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/plugins/command"
	"github.com/sentinel-runtime/sentinel/sdk"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

func TestResult(t *testing.T) {
	for fields, request := range map[string]string{
		`{"command":"code/verify","params":{"fullTest":true}}`: `{"command":"code/verify","params":{"fullTest":true}}`,
		`{"command":"code/verify"}`:                            `{"command":"code/verify","params":{}}`,
	} {
		h := sdktest.New(t).OK("sentinel_command", `{"success":false,"failed":["a"]}`)
		out, fault := sdktest.Run(t, sdktest.Only(command.Step()), "command", fields, h)
		if fault != nil {
			t.Fatalf("a result with success false became an error: %v", fault)
		}
		if out.String() != `{"success":false,"failed":["a"]}` {
			t.Errorf("output %s", out)
		}
		if diff := cmp.Diff([]string{request}, h.Requests("sentinel_command")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestErrors(t *testing.T) {
	h := sdktest.New(t).Fail("sentinel_command", sdk.Fail(sdk.CodeDenied, "outside the workspace"))
	_, fault := sdktest.Run(t, sdktest.Only(command.Step()), "command", `{"command":"code/read","params":{"path":"/etc"}}`, h)
	if fault == nil || fault.Code != sdk.CodeDenied {
		t.Errorf("got %v, want the error of the host", fault)
	}
	for fields, field := range map[string]string{`{"command":""}`: "command", `{"command":"x","params":[1]}`: "params"} {
		if _, fault := sdktest.Run(t, sdktest.Only(command.Step()), "command", fields, sdktest.New(t)); fault == nil || fault.Field != field {
			t.Errorf("%s: %v", fields, fault)
		}
	}
}

// "A command step may take its command from a value only with an allow-list on the step."
func TestAllow(t *testing.T) {
	plugin := sdktest.Only(command.Step())
	for fields, want := range map[string][]string{
		`{"command":"code/read"}`:                                 nil,
		`{"command":"code/read","allow":["code/*"]}`:              nil,
		`{"command":"$step.skillId","allow":["fs/read","fs/*"]}`:  nil,
		`{"command":"$step.skillId"}`:                             {"command: a command that is the value of a reference needs the field allow"},
		`{"command":"fs/$verb"}`:                                  {"command: a command that is the value of a reference needs the field allow"},
		`{"command":"$step.skillId","allow":"$list"}`:             {"allow: want a list of commands without references"},
		`{"command":"$step.skillId","allow":["fs/read","$more"]}`: {"allow: want a list of commands without references"},
		`{"command":"code/read","allow":"$list"}`:                 {"allow: want a list of commands without references"},
	} {
		got := sdktest.Problems(t, plugin, "command", fields)
		if len(got) != len(want) || len(want) > 0 && !strings.HasPrefix(got[0], want[0]) {
			t.Errorf("%s: %v, want %v", fields, got, want)
		}
	}
	h := sdktest.New(t).OK("sentinel_command", `{"content":"x"}`)
	if _, fault := sdktest.Run(t, plugin, "command", `{"command":"fs/read","params":{"path":"a"},"allow":["fs/read"]}`, h); fault != nil {
		t.Fatal(fault)
	}
	want := []string{`{"by":"model","command":"fs/read","params":{"path":"a"},"tools":["fs/read"]}`}
	if diff := cmp.Diff(want, h.Requests("sentinel_command")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
