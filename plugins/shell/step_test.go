package shell_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/plugins/shell"
	"github.com/sentinel-runtime/sentinel/sdk"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

func TestRun(t *testing.T) {
	for _, tt := range []struct{ name, fields, request string }{
		{"line", `{"command":"echo \"$S_0\"","env":{"A":"b"},"cwd":"sub","stdin":"in"}`,
			`{"command":"code/shell/execute","params":{"command":"echo \"$S_0\"","cwd":"sub","env":{"A":"b"},"stdin":"in","wait":true}}`},
		{"env", `{"argv":["env"],"env":{"A":3,"B":true,"C":""}}`, `{"command":"code/shell/execute","params":{"argv":["env"],"env":{"A":"3","B":"true","C":""},"wait":true}}`},
		{"bash", `{"command":"false | cat","shell":["bash","-o","pipefail","-c"]}`, `{"command":"code/shell/execute","params":{"argv":["bash","-o","pipefail","-c","false | cat"],"wait":true}}`},
		{"background", `{"command":"npm run dev","background":true}`, `{"command":"code/shell/execute","params":{"command":"npm run dev","endsWith":"loop","wait":false}}`},
		{"ready", `{"command":"npm run dev","background":true,"ready":{"http":"http://localhost:3000","timeoutMs":5}}`,
			`{"command":"code/shell/execute","params":{"command":"npm run dev","endsWith":"loop","ready":{"http":"http://localhost:3000","timeoutMs":5},"wait":false}}`},
		{"port", `{"argv":["db"],"background":true,"ready":{"tcp":5432}}`,
			`{"command":"code/shell/execute","params":{"argv":["db"],"endsWith":"loop","ready":{"tcp":"5432"},"wait":false}}`},
		{"argv", `{"argv":["git","status"]}`, `{"command":"code/shell/execute","params":{"argv":["git","status"],"wait":true}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := sdktest.New(t).OK("sentinel_command", `{"success":true,"exitCode":0,"output":"x"}`)
			out, fault := sdktest.Run(t, sdktest.Only(shell.Step()), "shell", tt.fields, h)
			if fault != nil || out.String() != `{"success":true,"exitCode":0,"output":"x"}` {
				t.Errorf("%s %v", out, fault)
			}
			if diff := cmp.Diff([]string{tt.request}, h.Requests("sentinel_command")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFailure(t *testing.T) {
	// A result of code/shell/execute: both streams in output, standard error also in stderr.
	const result = `{"executionId":"x","running":false,"success":false,"exitCode":3,"output":"o1\no2\n","stderr":"%"}`
	long := strings.Repeat("é", 400)
	for _, tt := range []struct{ fields, stderr, want string }{
		{`{"command":"npm test"}`, `a\nb\nc\nd\ne\nf\n\n`, "shell \"npm test\": exit code 3: b\nc\nd\ne\nf"},
		{`{"command":"x"}`, `1%\r50%\r100%\nno space\r\r`, "shell \"x\": exit code 3: 100%\nno space"},
		{`{"argv":["make","-k"]}`, ` \n`, "shell \"make -k\": exit code 3: o1\no2"},
		{`{"argv":["sh","-c","echo it's é; exit 7",""]}`, ` \n`, "shell `sh -c 'echo it'\\''s é; exit 7' ''`: exit code 3: o1\no2"},
		{`{"command":"echo \"a b\" >&2; exit 3"}`, ` \n`, "shell `echo \"a b\" >&2; exit 3`: exit code 3: o1\no2"},
		{`{"command":"echo \"` + "`" + `id` + "`" + `\""}`, ` \n`, "shell \"echo \\\"`id`\\\"\": exit code 3: o1\no2"},
		{`{"command":"` + strings.Repeat("x", 150) + `"}`, long, `shell "` + strings.Repeat("x", 100) + `...": exit code 3: ` + long[:500]},
	} {
		answer := strings.Replace(result, "%", tt.stderr, 1)
		_, fault := sdktest.Run(t, sdktest.Only(shell.Step()), "shell", tt.fields, sdktest.New(t).OK("sentinel_command", answer))
		if diff := cmp.Diff(&sdk.Error{Code: "exit", Message: tt.want}, fault); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	allowed := `{"command":"npm test","allowFailure":true}`
	out, fault := sdktest.Run(t, sdktest.Only(shell.Step()), "shell", allowed, sdktest.New(t).OK("sentinel_command", result))
	if fault != nil || out.String() != result {
		t.Errorf("with allowFailure: %s %v", out, fault)
	}
}

// TestCouldNotRun checks that a program that cannot run is an error even with allowFailure.
func TestCouldNotRun(t *testing.T) {
	h := sdktest.New(t).Fail("sentinel_command", sdk.Fail(sdk.CodeTimeout, "time limit"))
	if _, fault := sdktest.Run(t, sdktest.Only(shell.Step()), "shell", `{"command":"x","allowFailure":true}`, h); fault == nil || fault.Code != sdk.CodeTimeout {
		t.Errorf("%v", fault)
	}
}

func TestProblems(t *testing.T) {
	for fields, want := range map[string]string{
		`{}`:                                           "command: want command or argv",
		`{"command":"a","argv":["b"]}`:                 "argv: want command or argv, not both",
		`{"argv":["b"],"shell":"sh"}`:                  "shell: argv is executed without a shell",
		`{"command":"a","ready":{"tcp":1}}`:            `ready: ready needs "background": true`,
		`{"command":"a","background":true,"ready":{}}`: "ready: want exactly one of http, tcp and match",
		`{"command":"a","background":true,"ready":{"tcp":1,"match":"x"}}`: "ready: want exactly one of http, tcp and match",
	} {
		if got := sdktest.Problems(t, sdktest.Only(shell.Step()), "shell", fields); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q", fields, got)
		}
	}
}

// TestReferencesAreNoProblems: what a reference is resolved to is checked when the step is executed.
func TestReferencesAreNoProblems(t *testing.T) {
	for _, fields := range []string{
		`{"command":"a","background":"$yes","ready":{"tcp":1}}`, `{"command":"a","background":true,"ready":"$probe"}`,
	} {
		if got := sdktest.Problems(t, sdktest.Only(shell.Step()), "shell", fields); len(got) != 0 {
			t.Errorf("%s: %q", fields, got)
		}
	}
}
