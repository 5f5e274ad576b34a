package sentinels_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers/standard"
)

const withEnvironment = `{"name": "a",
  "env": {"PORT": 8080, "DEBUG": true, "GREETING": "hello", "GH_TOKEN": {"secret": "GH_TOKEN"}},
  "envFiles": [".env", "/etc/shared.env"],
  "steps": [
    {"type": "shell", "command": "make", "env": {"NPM": {"secret": "NPM_TOKEN"}, "LATER": {"secret": "$name"}, "X": "$y"}},
    {"type": "command", "command": "code/shell/execute", "params": {"command": "make", "env": {"K": {"secret": "KEY"}}}},
    {"type": "shell", "command": "make", "env": "$all"}
  ]}`

func TestEnvironment(t *testing.T) {
	d, problems := sentinels.Decode([]byte(withEnvironment), sentinels.DecodeOptions{})
	if len(problems.Errors()) > 0 {
		t.Fatal(problems)
	}
	again, problems := sentinels.Decode(sentinels.Encode(d), sentinels.DecodeOptions{})
	if len(problems.Errors()) > 0 || again.Hash() != d.Hash() || string(again.Env["PORT"]) != "8080" || len(again.EnvFiles) != 2 {
		t.Errorf("written and read again: %+v, %v", again, problems)
	}
	var uses []string
	d.EachSecret(nil, func(path, name string) { uses = append(uses, path+" "+name) })
	if diff := cmp.Diff([]string{"env.GH_TOKEN GH_TOKEN", "steps[0].env.NPM NPM_TOKEN", "steps[1].params.env.K KEY"}, uses); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for i, want := range []string{"[NPM_TOKEN]", "[KEY]", "[]"} {
		if got := fmt.Sprint(d.Steps[i].Secrets()); got != want {
			t.Errorf("step %d: %s, want %s", i, got, want)
		}
	}
	if plain := d.Environment().Plain(); len(plain.Variables) != 3 || plain.Files != nil || len(d.Env) != 4 {
		t.Errorf("plain: %+v of %+v", plain, d.Env)
	}
	inner := (&sentinels.Definition{Env: map[string]json.RawMessage{"PORT": json.RawMessage("1")}, EnvFiles: []string{"own"}}).Inside(d.Environment())
	if string(inner.Env["PORT"]) != "1" || len(inner.Env) != 4 || fmt.Sprint(inner.EnvFiles) != "[.env /etc/shared.env own]" {
		t.Errorf("inside: %+v, %q", inner.Env, inner.EnvFiles)
	}
}

func TestEnvironmentProblems(t *testing.T) {
	for env, want := range map[string]string{
		`"x"`: "want an object", `{"a b": 1}`: "invalid name of an environment variable", `{"A": {"secret": "lower"}}`: "invalid name of a secret", `{"A": {"secret": "B", "c": 1}}`: "want a text, a number",
		`{"A": [1]}`: "want a text, a number", `{"A": null}`: "want a text, a number", `{"A": 1, "A": 2}`: "duplicate",
	} {
		_, problems := sentinels.Decode([]byte(`{"name": "a", "steps": [], "env": `+env+`}`), sentinels.DecodeOptions{})
		if len(problems.Errors()) != 1 || !strings.Contains(problems.Error(), want) {
			t.Errorf("%s: %v, want %q", env, problems, want)
		}
	}
}

// TestAddedSecrets checks that an edit may move and remove uses of secrets, and that each new one counts.
func TestAddedSecrets(t *testing.T) {
	decode := func(text string) *sentinels.Definition {
		d, problems := sentinels.Decode([]byte(text), sentinels.DecodeOptions{Triggers: standard.Set().Formats()})
		if len(problems.Errors()) > 0 {
			t.Fatal(problems)
		}
		return d
	}
	hook := func(name string) string {
		return `"trigger": {"type": "webhook", "auth": "token", "secretEnv": "` + name + `"}`
	}
	step := func(env string) string { return `{"type": "shell", "command": "x", "env": {` + env + `}}` }
	before := decode(`{"name": "a", "steps": [` + step(`"A": {"secret": "S"}`) + `]}`)
	for next, want := range map[string]string{
		`{"name": "a", "steps": [{"type": "wait"}, ` + step(`"A": {"secret": "S"}, "B": 1`) + `]}`:             "[]",
		`{"name": "a", "steps": [` + step(`"A": {"secret": "S"}`) + `, ` + step(`"A": {"secret": "S"}`) + `]}`: "[S at steps[1].env.A]",
		`{"name": "a", "steps": []}`:                                                                    "[]",
		`{"name": "a", "steps": [` + step(`"B": {"secret": "S"}`) + `]}`:                                "[S at steps[0].env.B]",
		`{"name": "a", "env": {"A": {"secret": "T"}}, "steps": [` + step(`"A": {"secret": "S"}`) + `]}`: "[T at env.A]",
	} {
		if got := fmt.Sprint(sentinels.AddedSecrets(before, decode(next), nil)); got != want {
			t.Errorf("%s: %s, want %s", next, got, want)
		}
	}
	if got := sentinels.AddedSecrets(nil, before, nil); len(got) != 1 {
		t.Errorf("new: %q", got)
	}
	before = decode(`{"name": "a", "steps": [], ` + hook("HOOK") + `}`)
	for name, want := range map[string]string{"HOOK": "[]", "HOME": "[HOME at trigger[0].secretEnv]"} {
		if got := fmt.Sprint(sentinels.AddedSecrets(before, decode(`{"name": "a", "steps": [], `+hook(name)+`}`), nil)); got != want {
			t.Errorf("webhook with %s: %s, want %s", name, got, want)
		}
	}
}

func TestUsedInShellLine(t *testing.T) {
	for line, want := range map[string]string{
		"echo $A \"${B}\" '$C' ${D:-x}": "[A B]", "A=1; echo $A": "[]", ". ./env; echo $A": "[]", "for x in 1; do echo $x $Y; done": "[Y]", "true": "[]",
	} {
		if got := fmt.Sprint(sentinels.UsedInShellLine(line)); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}
