package shell

import (
	"context"
	"errors"
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
}

// Recover finds the executions that an earlier process left behind, ends what
// still lives of them and marks them as lost. A process is taken for one of
// ours only if boot, pid and start time agree or it carries the cookie, so a
// pid that was used again is never killed. Call it once, before the first
// start; later calls return nothing.
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
	for _, r := range records {
		e, err := m.attach(r)
		if err != nil {
			problem = errors.Join(problem, err)
			continue
		}
		if r.State != Running || e.isLive() {
			continue
		}
		l := Leftover{ID: r.ID, Run: r.Run, Argv: r.Argv, PID: r.PID}
		if r.BootID == boot {
			l.Killed = endLeftover(r)
		}
		e.lose(ctx)
		m.log.Info("ended leftover execution", "execution", r.ID, "run", r.Run, "processes", l.Killed)
		found = append(found, l)
	}
	m.prune()
	return found, problem
}

// recoverOnce recovers if nobody has yet.
func (m *Manager) recoverOnce(ctx context.Context) error {
	_, err := m.Recover(ctx)
	return err
}

// endLeftover kills what lives of a record's tree. The session counts only if
// its leader is still the very process, since the number may belong to
// somebody else by now; the cookie always does.
func endLeftover(r Record) int {
	leader := 0
	if r.PID != 0 && r.StartTime != 0 && startTime(r.PID) == r.StartTime {
		leader = r.PID
	}
	return endTree(leader, r.StartTime, r.Cookie, false)
}

// lose marks an execution whose end nobody saw.
func (e *execution) lose(ctx context.Context) {
	e.write('h', []string{"[the host stopped while this ran: output may be missing, the exit code is not known]"})
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rec.State, e.rec.EndedAt = Lost, time.Now()
	if err := e.save(ctx); err != nil {
		e.m.log.Warn("record lost execution", "execution", e.id, "error", err)
	}
	e.announce()
}
