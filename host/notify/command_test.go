//go:build unix

package notify_test

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/notify"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// child is a command without a supervisor.
type child struct {
	cmd    *exec.Cmd
	exited chan struct{}
}

func (c child) Exited() <-chan struct{} { return c.exited }

func (c child) End() (int, string, error) {
	_ = c.cmd.Process.Kill()
	<-c.exited
	if c.cmd.ProcessState.ExitCode() < 0 {
		return -1, "killed", nil
	}
	return c.cmd.ProcessState.ExitCode(), "", nil
}

func shell(line string, env []string, stdin io.Reader, output *os.File) (notify.Process, error) {
	c := child{exec.Command("/bin/sh", "-c", line), make(chan struct{})}
	c.cmd.Env, c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = env, stdin, output, output
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = c.cmd.Wait()
		close(c.exited)
	}()
	return c, nil
}

// A command gets the message as JSON and in variables, and nothing of it is part of the line.
func TestCommand(t *testing.T) {
	dir := t.TempDir()
	m := notify.Message{Title: "$(touch '" + dir + "/obeyed'); `id`", Text: "two\nlines '\"", Severity: notify.Error, Run: "run/1", Ticket: "T-1", URL: "https://example.org"}
	line := `cat > '` + dir + `/stdin'; printf '%s|%s|%s|%s|%s' "$SENTINEL_NOTIFY_TITLE" "$SENTINEL_NOTIFY_TEXT" "$SENTINEL_NOTIFY_SEVERITY" "$SENTINEL_NOTIFY_RUN" "$SENTINEL_NOTIFY_TICKET" > '` + dir + `/env'`
	sent, err := service(t, notify.Options{Command: line, Shell: shell}).Send(t.Context(), m, "k")
	if err != nil || len(sent) != 1 || !sent[0].OK || sent[0].To != "command" {
		t.Fatalf("%+v, %v", sent, err)
	}
	var got notify.Message
	stdin, err := os.ReadFile(filepath.Join(dir, "stdin"))
	if err != nil || json.Unmarshal(stdin, &got) != nil || got != m {
		t.Errorf("%s, %v", stdin, err)
	}
	if env, err := os.ReadFile(filepath.Join(dir, "env")); err != nil || string(env) != m.Title+"|"+m.Text+"|error|run/1|T-1" {
		t.Errorf("%s, %v", env, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "obeyed")); err == nil {
		t.Error("the title was obeyed")
	}
}

// The exit code decides about a repetition, the output is part of the error, and a command that
// hangs ends at the timeout.
func TestCommandErrors(t *testing.T) {
	for _, c := range []struct {
		line      string
		code      abi.Code
		permanent bool
		has       string
	}{
		{"echo no such room >&2; exit 3", abi.Plugin, true, `command: exit code 3: "no such room"`},
		{"exit 75", abi.Unavailable, false, "exit code 75"},
		{"head -c 100000 /dev/zero | tr '\\0' x; exit 1", abi.Plugin, true, "xxx"},
		{"kill -9 $$", abi.Plugin, true, "signal"},
	} {
		_, err := service(t, notify.Options{Command: c.line, Shell: shell}).Send(t.Context(), notify.Message{Title: "t"}, "k")
		if e := abi.As(err); e == nil || e.Code != c.code || e.Permanent != c.permanent || !strings.Contains(e.Message, c.has) || len(e.Message) > 400 {
			t.Errorf("%s: %+v", c.line, err)
		}
	}
	_, err := service(t, notify.Options{Command: "exec sleep 1000", Shell: shell, Timeout: 50 * time.Millisecond}).Send(t.Context(), notify.Message{Title: "t"}, "k")
	if abi.CodeOf(err) != abi.Timeout || abi.As(err).Permanent {
		t.Errorf("a command that hangs: %v", err)
	}
}
