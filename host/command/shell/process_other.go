//go:build !linux

package shell

import (
	"context"
	"errors"
	"os/exec"
)

// process is a running command with its process group, as far as the system has
// groups.
type process struct {
	pid    int
	start  uint64
	cmd    *exec.Cmd
	exited chan struct{} // closed when the command has ended and was reaped
	code   int
	signal string
}

// supervisors do not exist here: only Linux lets a process adopt the orphans of its
// descendants.
type supervisors struct{}

func (*supervisors) close() {}

// startProcess starts the command.
func startProcess(cmd *exec.Cmd, _ starting) (*process, error) {
	cmd.SysProcAttr = sessionAttr()
	if err := cmd.Start(); err != nil {
		return nil, startError(cmd.Args[0], err)
	}
	p := &process{pid: cmd.Process.Pid, start: startTime(cmd.Process.Pid), cmd: cmd, exited: make(chan struct{}), code: -1}
	go func() { // ends with the process, which wait sees to
		err := cmd.Wait()
		if err == nil || errors.As(err, new(*exec.ExitError)) || errors.Is(err, exec.ErrWaitDelay) {
			p.code, p.signal = exitOfCommand(cmd)
		}
		close(p.exited)
	}()
	return p, nil
}

// terminate asks the process group to end.
func (p *process) terminate() { terminate(p.cmd.Process) }

// kill ends the process group.
func (p *process) kill() { killGroup(p.cmd.Process) }

// wait returns when the command has ended, and ends what is left of its group.
func (p *process) wait(context.Context, func()) ending {
	<-p.exited
	killGroup(p.cmd.Process)
	return ending{}
}

// exit returns how the command ended; -1 if that is not known.
func (p *process) exit() (code int, signal string) { return p.code, p.signal }

// root is the pid of the command.
func (p *process) root() int { return p.pid }
