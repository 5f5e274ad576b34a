package shell

import (
	"context"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Interrupted returns the executions of a run that an earlier process of the
// host left running, in the order in which they were started. Their process
// trees have ended when it returns.
func (m *Manager) Interrupted(ctx context.Context, run sentinels.RunID) ([]Record, error) {
	all, err := m.InterruptedRuns(ctx)
	return all[run], err
}

// known returns an execution that this process has in memory, nil if it has not.
func (m *Manager) known(id string) *execution {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all[id]
}

// InterruptedRuns is Interrupted for all runs at once: it reads the list of
// executions once, where ten thousand runs would each read it.
func (m *Manager) InterruptedRuns(ctx context.Context) (map[sentinels.RunID][]Record, error) {
	if err := m.recoverOnce(ctx); err != nil {
		return nil, err
	}
	records, err := m.store.List(ctx)
	if err != nil {
		return nil, err
	}
	lost := map[sentinels.RunID][]Record{}
	for _, r := range records {
		if e := m.known(r.ID); e != nil {
			r = e.record() // that it is lost may not be stored: the disk is full
		}
		if r.State == Lost {
			lost[r.Run] = append(lost[r.Run], r)
		}
	}
	return lost, nil
}
