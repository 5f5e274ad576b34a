package shell

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A Leftover is an execution that an earlier process of the host left running
// when it went down.
type Leftover struct {
	ID     string
	Run    sentinels.RunID
	Argv   []string
	PID    int
	Killed int // processes that still lived and were ended
	// Unsure says that the supervisor of the execution did not report the end of its
	// process tree: it was killed as well, and processes may be left that cannot be
	// told from others.
	Unsure bool
}

// Recover finds the executions that an earlier host process left running, and marks
// them as lost. Their supervisors end them when the host has ended; Recover waits for
// that, for 10 s at most each, and ends what still lives. A process is ended only if
// boot, pid and start time agree, or if its environment has the cookie, so that a
// reused pid is never killed. Call it once, before the first start; later calls
// return nothing.
func (m *Manager) Recover(ctx context.Context) ([]Leftover, error) {
	m.mu.Lock()
	done := m.recovered
	m.recovered = true
	m.mu.Unlock()
	if done {
		return nil, nil
	}
	records, problem := m.store.List(ctx)
	var found []Leftover
	boot := bootID()
	outputs, err := listOutputs(m.opt.Dir)
	if err != nil {
		return nil, errors.Join(problem, err)
	}
	for _, r := range records {
		if ctx.Err() != nil {
			return found, errors.Join(problem, context.Cause(ctx))
		}
		e, err := m.attachWith(r, outputs[r.ID])
		if err != nil {
			problem = errors.Join(problem, err)
			continue
		}
		if r.State != Running || e.isLive() {
			continue
		}
		l := Leftover{ID: r.ID, Run: r.Run, Argv: r.Argv, PID: r.PID}
		if r.BootID == boot {
			killed, sure := endLeftover(r, m.treeFile(r.ID))
			l.Killed, l.Unsure = killed, !sure
		}
		e.lose(ctx)
		if l.Unsure {
			_ = os.Remove(m.treeFile(r.ID)) // it was reported now
			m.log.Warn("leftover execution: processes may be left that cannot be distinguished from others", "execution", r.ID, "run", r.Run, "command", commandLine(r.Argv), "ended", l.Killed)
		} else {
			m.log.Info("leftover execution has ended", "execution", r.ID, "run", r.Run, "processes", l.Killed)
		}
		found = append(found, l)
	}
	m.prune()
	return found, problem
}

// recoverOnce recovers once.
func (m *Manager) recoverOnce(ctx context.Context) error {
	_, err := m.Recover(ctx)
	return err
}

// lose marks an execution whose end was not observed.
func (e *execution) lose(ctx context.Context) {
	e.note("[the host stopped while this ran: output may be missing, the exit code is not known]")
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rec.State, e.rec.EndedAt = Lost, time.Now()
	if err := e.save(ctx); err != nil {
		e.m.log.Warn("record lost execution", "execution", e.id, "error", err)
	}
	e.announce()
}
