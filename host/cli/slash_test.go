package cli

import (
	"strings"
	"testing"
)

func TestCommandsByTheirOwnName(t *testing.T) {
	for line, want := range map[string]string{
		"sentinel/list":                        "exec sentinel/list",
		"sentinel/step/list --sentinelId=abc":  "exec sentinel/step/list --sentinelId=abc",
		"-o json data/list --collection=notes": "exec -o json data/list --collection=notes",
		"--state=/tmp/x sentinel/list":         "exec --state=/tmp/x sentinel/list",
		"run ./a/b.json":                       "run ./a/b.json",
		"--state /tmp/x run a/b.json":          "--state /tmp/x run a/b.json",
		"--trust /tmp/x init --as a":           "--trust /tmp/x init --as a",
		"exec code/read --path=a/b":            "exec code/read --path=a/b",
		"-v":                                   "-v",
		"":                                     "",
	} {
		if got := strings.Join(asExec(strings.Fields(line)), " "); got != want {
			t.Errorf("%q is taken as %q, want %q", line, got, want)
		}
	}
}
