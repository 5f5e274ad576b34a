//go:build unix

package shell_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/shell"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestPreview checks that everything which is executed is shown, also of a long line.
func TestPreview(t *testing.T) {
	b := newBench(t, shell.Options{})
	dir, err := filepath.EvalSymlinks(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	show := func(params string) (string, error) {
		p, err := b.reg.Preview(t.Context(), &command.Call{Command: "code/shell/execute", Params: json.RawMessage(params), By: command.ByUser, Workspace: b.dir})
		return p.Text, err
	}
	for params, want := range map[string]string{
		`{"command":"go test ./..."}`:                                       "$ go test ./...\nin " + dir,
		`{"argv":["git","commit","-m","a b\n$(c)"],"wait":false}`:           "$ git commit -m \"a b\\n$(c)\"\nin " + dir + "\nin the background",
		`{"command":"python","args":["x y"],"env":{"A":"1 2"}}`:             "$ python \"x y\"\nin " + dir + "\nwith A=\"1 2\"",
		`{"command":"sh","stdin":"rm x\nrm y\n"}`:                           "$ sh\nin " + dir + "\nwhich reads:\n  rm x\n  rm y",
		`{"command":"true\nfalse"}`:                                         "$ true\n  false\nin " + dir,
		`{"command":"true` + strings.Repeat(" ", 170) + `;rm -rf ~"}`:       "$ true[170 blanks];rm -rf ~\nin " + dir,
		`{"command":"echo ok` + strings.Repeat(`\n`, 3000) + `rm -rf ~/x"}`: "$ echo ok\n  [2999 blank lines]\n  rm -rf ~/x\nthese are all of its 3001 lines, 3017 bytes\nin " + dir,
		`{"command":"` + strings.Repeat(`true\n`, 700) + `rm"}`:             "$ " + strings.Repeat("true\n  ", 700) + "rm\nthese are all of its 701 lines, 3502 bytes\nin " + dir,
	} {
		if got, err := show(params); err != nil || got != want {
			t.Errorf("%s: %v\n%q\nwant\n%q", params, err, got, want)
		}
	}
	if _, err := show(`{"command":"` + strings.Repeat(`true;`, 14_000) + `"}`); abi.CodeOf(err) != abi.Limit {
		t.Errorf("a line of 70 KB: %v", err)
	}
	for _, params := range []string{`{"command":"true","cwd":"/"}`, `{"command":""}`, `{"command":"true","cwd":"none"}`} {
		if got, err := show(params); abi.As(err) == nil {
			t.Errorf("%s: %q", params, got)
		}
	}
}
