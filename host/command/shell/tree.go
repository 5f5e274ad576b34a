package shell

import (
	"os"
	"os/exec"
)

// A Tree is a program with all the processes that it starts. It has no record and no
// log, and ends with this process.
//
// # Concurrency
//
// End is called once. The other methods may be called at any time.
type Tree struct {
	p    *process
	file string
}

// StartTree starts a program. Its standard output and error must be files.
func (m *Manager) StartTree(cmd *exec.Cmd) (*Tree, error) {
	file := m.treeFile(randomID())
	p, err := startProcess(cmd, starting{pool: &m.supervisors, file: file, cookie: randomID(), adopts: m.opt.Subreaper})
	if err != nil {
		return nil, err
	}
	return &Tree{p, file}, nil
}

// Exited is closed when the program has ended. What it started may still be there.
func (t *Tree) Exited() <-chan struct{} { return t.p.exited }

// End ends all processes and returns how the program ended: by a signal, or with an exit
// code, which is -1 if it is not known.
func (t *Tree) End() (code int, signal string) {
	select {
	case <-t.p.exited:
	default:
		t.p.kill()
	}
	t.p.wait()
	_ = os.Remove(t.file) // left only when the supervisor was killed
	return t.p.exit()
}
