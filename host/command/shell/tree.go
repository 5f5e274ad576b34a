package shell

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
)

// A Tree is a program with all the processes that it starts. It has no record and no
// log, and ends with this process.
//
// # Concurrency
//
// End is called once. The other methods may be called at any time.
type Tree struct {
	m     *Manager
	p     *process
	file  string
	ended chan struct{}
}

// StartTree starts a program that strangers may have written, below a supervisor that serves
// no steps. Its standard output and error must be files. Of cmd.SysProcAttr the Cloneflags are
// used, see package supervise.
func (m *Manager) StartTree(cmd *exec.Cmd) (*Tree, error) {
	file := m.treeFile(randomID())
	p, err := startProcess(cmd, starting{pool: &m.supervisors, file: file, cookie: randomID(), adopts: m.opt.Subreaper, foreign: true})
	if err != nil {
		return nil, err
	}
	return &Tree{m, p, file, make(chan struct{})}, nil
}

// Line returns the command of a shell line that the operator wrote, with the variables of the host
// that programs of steps get.
func (m *Manager) Line(line string) *exec.Cmd {
	cmd := exec.Command(shellArgv[0], append(slices.Clone(shellArgv[1:]), line)...)
	cmd.Dir = os.TempDir() // the same wherever the host was started
	for _, entry := range m.opt.Environ() {
		switch name, value, _ := strings.Cut(entry, "="); {
		case name == "PATH":
			cmd.Env = append(cmd.Env, "PATH="+absolutePath(value))
		case m.passes(&command.Call{By: command.ByUser}, name):
			cmd.Env = append(cmd.Env, entry)
		}
	}
	return cmd
}

// Root returns the pid of a process above all others of the tree, 0 when they have ended.
func (t *Tree) Root() int { return t.p.root() }

// Exited is closed when the program has ended. What it started may still be there.
func (t *Tree) Exited() <-chan struct{} { return t.p.exited }

// Ended is closed when nothing is left of what End has ended.
func (t *Tree) Ended() <-chan struct{} { return t.ended }

// End ends all processes and returns how the program ended: by a signal, or with an exit
// code, which is -1 if it is not known. The error says that processes are or may be left. Of a PID
// namespace the kernel may still end some then, until Ended is closed.
func (t *Tree) End() (code int, signal string, err error) {
	select {
	case <-t.p.exited:
	default:
		t.p.kill()
	}
	var e ending
	dying := make(chan struct{})
	go func() { // ends with the supervisor, which Manager.Close sees to
		defer close(t.ended)
		e = t.p.wait(t.m.closing, func() {
			t.m.log.Warn("the kernel takes long to end the processes of a command, whose memory it frees", "pid", t.p.pid)
			close(dying)
		})
		_ = os.Remove(t.file) // left only when the supervisor was killed
	}()
	select {
	case <-dying:
	case <-t.ended:
		switch {
		case len(e.left) > 0:
			err = fmt.Errorf("%d processes of the command could not be ended", len(e.left))
		case e.lost:
			err = errors.New("the supervisor of the command was killed: processes may be left")
		}
	}
	code, signal = t.p.exit()
	return code, signal, err
}
