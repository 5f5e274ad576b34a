//go:build linux

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
)

// echoes reports whether a terminal shows what is typed.
func (p *ptyProcess) echoes() bool {
	p.t.Helper()
	modes, err := unix.IoctlGetTermios(int(p.keys.Fd()), unix.TCGETS)
	if err != nil {
		p.t.Fatal(err)
	}
	return modes.Lflag&unix.ECHO != 0
}

// hides returns when the terminal does not show what is typed.
func (p *ptyProcess) hides() {
	p.t.Helper()
	for late := time.Now().Add(time.Minute); p.echoes(); time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			p.t.Fatal("the terminal shows what is typed")
		}
	}
}

// TestSecretSetAtTerminal types the value of a secret: the terminal does not show it, also when it is
// wrong, a step gets it, and it is in no file.
func TestSecretSetAtTerminal(t *testing.T) {
	const value = "value-typed-at-a-terminal"
	dir := project(t, `{"name": "s", "steps": [{"type": "shell", "command": "test \"$T\" = value-typed-at-a-terminal", "env": {"T": {"secret": "TYPED"}}}]}`)
	env := map[string]string{"HOME": t.TempDir(), "XDG_CONFIG_HOME": filepath.Join(t.TempDir(), "conf"), "PATH": os.Getenv("PATH")}
	set := func(line string, code int) string {
		t.Helper()
		p := atTerminal(t, dir, env, "secret", "set", "TYPED")
		shown := p.await(`value of TYPED: `)
		p.hides()
		p.press(line)
		return shown + p.end(code)
	}
	if shown := set("short1\r", app.ExitDenied); strings.Contains(shown, "short1") {
		t.Errorf("a value that is too short is shown:\n%s", shown)
	}
	set("\r", app.ExitDenied)
	if shown := set(value+"\r", 0); strings.Contains(shown, "typed-at") || !strings.Contains(shown, "stored TYPED") {
		t.Errorf("want the value stored and not shown:\n%s", shown)
	}
	atTerminal(t, dir, env, "secret", "allow", "TYPED", "s").end(0)
	atTerminal(t, dir, env, "run", "s.json").end(0)
	for _, root := range []string{filepath.Join(dir, ".sentinel"), env["XDG_CONFIG_HOME"]} {
		err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && strings.Contains(fileText(t, path), value) {
				t.Errorf("%s has the value", path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestSecretSetInterrupted presses Ctrl-C at the question for a value: the program ends, stores
// nothing, and the terminal shows again what is typed.
func TestSecretSetInterrupted(t *testing.T) {
	dir := project(t, `{}`)
	env := map[string]string{"HOME": t.TempDir(), "XDG_CONFIG_HOME": filepath.Join(t.TempDir(), "conf")}
	p := atTerminal(t, dir, env, "secret", "set", "TYPED")
	p.await(`value of TYPED: `)
	p.hides()
	p.press("half\x03")
	if shown := p.end(app.ExitInterrupt); strings.Contains(shown, "half") {
		t.Errorf("the value is shown:\n%s", shown)
	}
	if !p.echoes() {
		t.Error("the terminal does not show what is typed any more")
	}
}
