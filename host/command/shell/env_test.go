package shell_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/shell"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// hostEnv is the environment of a host that has one variable of each kind.
func hostEnv() []string {
	return []string{
		"PATH=/usr/bin:/bin", "HTTPS_PROXY=http://proxy", "no_proxy=local", "SSL_CERT_FILE=/etc/ca.pem", "NODE_EXTRA_CA_CERTS=/etc/ca.pem", "SSH_AUTH_SOCK=/tmp/agent",
		"GITHUB_TOKEN=ghp-value-1234", "APP_MODE=fast", "APP_KEY=key-value-1234", "OTHER=1", "TERM=xterm", "SENTINEL_SECRET_X=value-of-x-1234",
	}
}

// TestInherited checks which variables of the host programs get, by caller and by the names that
// are passed.
func TestInherited(t *testing.T) {
	always := "HTTPS_PROXY no_proxy SSL_CERT_FILE NODE_EXTRA_CA_CERTS"
	for _, tt := range []struct {
		name string
		pass []string
		call command.Call
		want string
	}{
		{"none", nil, command.Call{By: command.ByStep}, always + " SSH_AUTH_SOCK"},
		{"exact", []string{"GITHUB_TOKEN", "TERM"}, command.Call{By: command.ByStep}, always + " SSH_AUTH_SOCK GITHUB_TOKEN TERM"},
		{"pattern", []string{"APP_*"}, command.Call{By: command.ByStep}, always + " SSH_AUTH_SOCK APP_MODE APP_KEY"},
		{"inner pattern", []string{"*_TOK*N", "O*"}, command.Call{By: command.ByStep}, always + " SSH_AUTH_SOCK GITHUB_TOKEN OTHER"},
		{"all", []string{"*"}, command.Call{By: command.ByUser}, always + " SSH_AUTH_SOCK GITHUB_TOKEN APP_MODE APP_KEY OTHER"},
		{"model", []string{"*"}, command.Call{By: command.ByModel, Tools: []string{"code/shell/execute"}}, always + " APP_MODE OTHER"},
		{"agent", []string{"GITHUB_TOKEN"}, command.Call{By: command.ByAgent}, always},
		{"definition of a model", []string{"*"}, command.Call{By: command.ByModel, Tools: []string{"code/shell/execute"}, Within: []string{"code/shell/execute"}}, always + " APP_MODE OTHER"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, shell.Options{Pass: tt.pass, Environ: hostEnv})
			call := tt.call
			call.Run, call.Path, call.Key = "r", "0", "k"
			o, err := b.call(t.Context(), "code/shell/execute", call, params{"command": "env"})
			if err != nil {
				t.Fatal(err)
			}
			for _, entry := range hostEnv()[1:] {
				name, _, _ := strings.Cut(entry, "=")
				want := strings.Contains(" "+tt.want+" ", " "+name+" ")
				if got := strings.Contains("\n"+o.Output, "\n"+entry+"\n"); got != want {
					t.Errorf("%s: passed %v, want %v", name, got, want)
				}
			}
		})
	}
}

// TestOrderOfVariables checks that a step's own variables have precedence over those of the line,
// of the definition and of the host, and that secrets are resolved for the program alone.
func TestOrderOfVariables(t *testing.T) {
	asked := ""
	b := newBench(t, shell.Options{
		Environ: func() []string { return []string{"PATH=/usr/bin:/bin", "TZ=host", "LANG=host"} },
		Definition: func(*command.Call) (map[string]string, error) {
			return map[string]string{"LANG": "definition", "A": "definition", "B": "definition"}, nil
		},
		Secret: func(_ *command.Call, name string) (string, error) { asked = name; return "value-of-" + name, nil },
	})
	o, err := b.call(t.Context(), "code/shell/execute", command.Call{By: command.ByStep, Run: "r", Path: "0", Key: "k", Env: map[string]string{"C": "line"}},
		params{"command": "echo $TZ $LANG $A $B $C $D", "env": params{"B": "step", "D": params{"secret": "KEY"}}})
	if want := "host definition definition step line value-of-KEY\n"; err != nil || o.Output != want || asked != "KEY" {
		t.Errorf("%q, %v, want %q", o.Output, err, want)
	}
	for _, env := range []params{{"A": params{"secret": "K", "x": 1}}, {"A": []int{1}}, {"A": params{}}} {
		if _, err := b.call(t.Context(), "code/shell/execute", command.Call{By: command.ByStep, Run: "r", Path: "0"}, params{"command": "true", "env": env}); abi.CodeOf(err) != abi.BadFields {
			t.Errorf("%v: %v", env, err)
		}
	}
	none := newBench(t, shell.Options{})
	if _, err := none.call(t.Context(), "code/shell/execute", command.Call{By: command.ByStep, Run: "r", Path: "0"}, params{"command": "true", "env": params{"D": params{"secret": "KEY"}}}); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("without secrets: %v", err)
	}
}

// TestWithheldHint checks which variable a line that failed did not get.
func TestWithheldHint(t *testing.T) {
	b := newBench(t, shell.Options{Pass: []string{"APP_*"}, Environ: hostEnv})
	for line, want := range map[string]string{
		"echo $GITHUB_TOKEN; exit 1": `$GITHUB_TOKEN is set here, but steps do not get it: write "env"`, "echo ${OTHER}; exit 1": "$OTHER is set here, but steps do not get it: name it in the setting shell.env",
		"echo $APP_KEY $TERM $PWD $UNSET; exit 1": "", "OTHER=2; echo $OTHER; exit 1": "", "echo $GIVEN $WRITTEN; exit 1": "", "echo $OTHER": "",
	} {
		call := command.Call{By: command.ByStep, Run: "r", Path: "0", Environment: sentinels.Environment{Variables: map[string]json.RawMessage{"WRITTEN": json.RawMessage(`1`)}}}
		o, err := b.call(t.Context(), "code/shell/execute", call, params{"command": line, "env": params{"GIVEN": "1"}})
		if err != nil || !strings.HasPrefix(o.Hint, want) || (want == "") != (o.Hint == "") {
			t.Errorf("%s: %q, %v, want %q", line, o.Hint, err, want)
		}
	}
	if got := fmt.Sprint(b.m.Withheld([]string{"OTHER", "APP_MODE", "PATH", "NONE"})); got != "[OTHER]" {
		t.Errorf("withheld: %s", got)
	}
}

// TestBareRepositoryOfFiles: files that look like a repository are none for a git that a step starts:
// the program that their settings name is not executed, whatever settings the environment has.
func TestBareRepositoryOfFiles(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	for name, tt := range map[string]struct {
		env  []string
		step map[string]any
		runs bool
	}{
		"no settings":       {},
		"settings":          {env: []string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=sentinel.test", "GIT_CONFIG_VALUE_0=kept"}},
		"settings of steps": {step: map[string]any{"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "sentinel.test", "GIT_CONFIG_VALUE_0": "kept"}},
		"allowed by a step": {step: map[string]any{"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.barerepository", "GIT_CONFIG_VALUE_0": "all"}, runs: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, shell.Options{Pass: []string{"GIT_*"}, Environ: func() []string {
				return append([]string{"PATH=" + filepath.Dir(git) + ":/usr/bin:/bin", "HOME=" + t.TempDir()}, tt.env...)
			}})
			executed := filepath.Join(b.dir, "executed")
			for file, text := range map[string]string{
				"x/HEAD": "ref: refs/heads/main\n", "x/objects/keep": "", "x/refs/keep": "",
				"x/config": "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = \"touch '" + executed + "'; false\"\n",
			} {
				path := filepath.Join(b.dir, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			in := params{"command": "git status; cd /; git config sentinel.test", "cwd": "x"}
			if tt.step != nil {
				in["env"] = tt.step
			}
			o, err := b.call(t.Context(), "code/shell/execute", command.Call{By: command.ByStep, Run: "r", Path: "0", Key: "k"}, in)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(executed); (err == nil) != tt.runs {
				t.Errorf("the program of the repository was executed: %v\n%s", err == nil, o.Output)
			}
			if strings.HasPrefix(name, "settings") && !strings.Contains(o.Output, "kept") {
				t.Errorf("a setting of the environment is gone:\n%s", o.Output)
			}
		})
	}
}
