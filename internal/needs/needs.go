// Package needs decides whether a test that starts a program of the machine can run.
//
// That a program is found on the search path says little: version managers (pyenv, rbenv, asdf, nvm,
// rustup) put shims there which end with an error where no version is set, and which depend on the
// folder and the variables. So the program is executed, as the test executes it.
package needs

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// limit ends a program that hangs.
const limit = time.Minute

// Program skips the test unless a command works in a folder and with variables, as those of
// [exec.Cmd]: nil are the variables of the process. Give a command that does nothing, such as
// node --version.
func Program(t testing.TB, dir string, env []string, argv ...string) {
	t.Helper()
	if err := Works(dir, env, argv...); err != nil {
		t.Skip(err)
	}
}

// Works returns why a command does not work in a folder and with variables, in one line, and nil if it
// does.
func Works(dir string, env []string, argv ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, env, time.Second
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	said, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if said != "" {
		said = ": " + said
	}
	return fmt.Errorf("%s does not work on this machine: %w%s", argv[0], err, said)
}
