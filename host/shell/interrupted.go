package shell

import (
	"context"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Interrupted returns the executions of a run that an earlier process of the
// host left running, in the order in which they were started. Their process
// trees have ended when it returns.
func (m *Manager) Interrupted(ctx context.Context, run sentinels.RunID) ([]Record, error) {
	if err := m.recoverOnce(ctx); err != nil {
		return nil, err
	}
	records, err := m.store.List(ctx)
	if err != nil {
		return nil, err
	}
	var lost []Record
	for _, r := range records {
		if r.Run == run && r.State == Lost {
			lost = append(lost, r)
		}
	}
	return lost, nil
}
