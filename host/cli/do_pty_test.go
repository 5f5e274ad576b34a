//go:build linux

package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
)

// openTerminal opens a pseudo-terminal of 100 columns: the side of the person, and that of
// the program.
func openTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	t.Cleanup(func() { _ = person.Close() })
	fd := int(person.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 100})
	}
	if err == nil {
		program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Close() })
	return person, program
}

// A ptyProcess is the program sentinel at a terminal of its own.
type ptyProcess struct {
	t       *testing.T
	cmd     *exec.Cmd
	keys    *os.File
	written chan string
	screen  string
}

func atTerminal(t *testing.T, dir string, env map[string]string, args ...string) *ptyProcess {
	t.Helper()
	person, program := openTerminal(t)
	p := &ptyProcess{t: t, cmd: exec.Command("sentinel", args...), keys: person, written: make(chan string, 1000)}
	p.cmd.Dir, p.cmd.Env = dir, []string{"TERM=xterm-256color", "SENTINEL_TRUST_ROOTS=/"}
	for name, value := range env {
		p.cmd.Env = append(p.cmd.Env, name+"="+value)
	}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = program, program, program
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true} // so that Ctrl-C reaches it
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	_ = program.Close()
	go func() { // ends with the program, or with the person's side
		defer close(p.written)
		b := make([]byte, 64<<10)
		for {
			n, err := person.Read(b)
			if err != nil {
				return
			}
			p.written <- string(b[:n])
		}
	}()
	return p
}

// await returns what was shown up to a pattern, once it is shown.
func (p *ptyProcess) await(pattern string) string {
	p.t.Helper()
	want := regexp.MustCompile(pattern)
	late := time.After(time.Minute)
	for {
		if at := want.FindStringIndex(p.screen); at != nil {
			shown := p.screen[:at[1]]
			p.screen = p.screen[at[1]:]
			return shown
		}
		select {
		case text, ok := <-p.written:
			if !ok {
				p.t.Fatalf("it ended before it showed %q:\n%s", pattern, p.screen)
			}
			p.screen += text
		case <-late:
			p.t.Fatalf("it never showed %q:\n%s", pattern, p.screen)
		}
	}
}

func (p *ptyProcess) press(keys string) {
	p.t.Helper()
	if _, err := p.keys.WriteString(keys); err != nil {
		p.t.Fatal(err)
	}
}

// end returns what is shown until the program ends with an exit code.
func (p *ptyProcess) end(want int) string {
	p.t.Helper()
	late := time.After(time.Minute)
	for open := true; open; {
		var text string
		select {
		case text, open = <-p.written:
			p.screen += text
		case <-late:
			p.t.Fatalf("it does not end:\n%s", p.screen)
		}
	}
	_ = p.cmd.Wait() // the exit code follows
	if got := p.cmd.ProcessState.ExitCode(); got != want {
		p.t.Errorf("exit code %d, want %d:\n%s", got, want, p.screen)
	}
	return p.screen
}

// TestSpecDoAtTerminal: "`sentinel do "task"` runs in the foreground with live progress, tool by
// tool, tokens and money; strict asks before the first write or shell command of a kind and
// shows the diff". The person at the terminal answers n, then y.
func TestSpecDoAtTerminal(t *testing.T) {
	edit := toolCall("code_edit", map[string]any{"path": "a.txt", "old": "one", "new": "two"})
	env := taskModel(t,
		toolCall("code_read", map[string]any{"path": "a.txt"}), edit, edit,
		toolCall("code_edit", map[string]any{"path": "a.txt", "old": "two", "new": "three"}), // of a kind that is approved
		toolCall("code_shell_execute", map[string]any{"command": "echo hi > b.txt"}),
		"I changed a.txt.")
	dir := folder(t, map[string]string{"a.txt": "one\n"})
	p := atTerminal(t, dir, env, "do", "Change a.txt", "--no-check")
	shown := p.await(`Allow code/edit of "a.txt"\?`)
	if !strings.Contains(shown, "read") || !regexp.MustCompile(`work.*\d+s · \d+ tokens`).MatchString(shown) {
		t.Errorf("no progress before the question:\n%s", shown)
	}
	shown = p.await(`reject \(n, or n and why\): `)
	if !regexp.MustCompile(`\x1b\[\S*m *-one`).MatchString(shown) || !regexp.MustCompile(`\x1b\[\S*m *\+two`).MatchString(shown) {
		t.Errorf("no coloured difference:\n%q", shown)
	}
	p.press("n say it otherwise\r")
	p.await(`Allow code/edit of "a.txt"\?`)
	p.await(`reject \(n, or n and why\): `)
	if got := fileText(t, dir, "a.txt"); got != "one\n" {
		t.Errorf("a.txt is %q after a rejection", got)
	}
	p.press("y\r")
	shown = p.await(`Allow this line\?`)
	if strings.Count(shown, "a.txt:1") != 2 || strings.Contains(shown, "Allow code/edit") {
		t.Errorf("two edits with one question:\n%s", shown)
	}
	if shown = p.await(`reject \(n, or n and why\): `); !strings.Contains(shown, "$ echo hi > b.txt") {
		t.Errorf("the line is not shown:\n%s", shown)
	}
	p.press("n\r")
	shown = p.end(0)
	for _, want := range []string{"I changed a.txt.", "a.txt", "done", "not verified", "tokens", "sentinel do --undo ", "sentinel do --continue "} {
		if !strings.Contains(shown, want) {
			t.Errorf("no %q at the end:\n%s", want, shown)
		}
	}
	if got := fileText(t, dir, "a.txt"); got != "three\n" {
		t.Errorf("a.txt is %q", got)
	}
}

// TestDoCtrlC presses Ctrl-C while the program asks: the run is stopped, what it changed is listed and
// can be reverted.
func TestDoCtrlC(t *testing.T) {
	env := taskModel(t,
		toolCall("code_write", map[string]any{"path": "b.txt", "content": "b\n"}),
		toolCall("code_shell_execute", map[string]any{"command": "sleep 100"}), "done")
	dir := folder(t, map[string]string{"a.txt": "one\n"})
	p := atTerminal(t, dir, env, "do", "Write b.txt", "--no-check")
	p.await(`reject \(n, or n and why\): `)
	p.press("y\r")
	p.await(`(?s)Allow this line\?.*reject \(n, or n and why\): |(?s)Allow sleep.*reject \(n, or n and why\): `)
	p.press("\x03")
	shown := p.end(app.ExitFailed)
	if !strings.Contains(shown, "stopped") || !strings.Contains(shown, "b.txt") || !strings.Contains(shown, "--undo") {
		t.Error(shown)
	}
	p = atTerminal(t, dir, env, "do", "--undo")
	if shown := p.end(0); !strings.Contains(shown, "deleted") {
		t.Error(shown)
	}
	if _, err := os.Lstat(dir + "/b.txt"); err == nil {
		t.Error("b.txt is still there")
	}
}

// TestDoTypedTooEarly checks that a line that was typed before a question does not answer it.
func TestDoTypedTooEarly(t *testing.T) {
	env := taskModel(t,
		toolCall("code_shell_execute", map[string]any{"command": "sleep 3"}),
		toolCall("code_write", map[string]any{"path": "b.txt", "content": "b\n"}), "done")
	dir := folder(t, map[string]string{"a.txt": "one\n"})
	p := atTerminal(t, dir, env, "do", "Write b.txt", "--no-check")
	p.await(`reject \(n, or n and why\): `)
	p.press("y\r")
	p.press("y\r")
	p.await(`ignored 1 line, typed before this question`)
	p.await(`(?s)code/write.*reject \(n, or n and why\): `)
	time.Sleep(300 * time.Millisecond) // in which it would take the early line
	if _, err := os.Lstat(dir + "/b.txt"); err == nil {
		t.Error("an early line approved the call")
	}
	p.press("n\r")
	p.end(0)
}
