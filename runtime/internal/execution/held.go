package execution

import (
	"context"
	"fmt"

	"github.com/sentinel-runtime/sentinel/internal/fairqueue"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// startBytes returns the size of what a run is started with, beside its definition.
func startBytes(begin *journal.RunStartBody) (n int64) {
	for name, v := range begin.Variables {
		n += int64(len(name) + len(v))
	}
	if begin.Event != nil {
		n += int64(len(begin.Event.Data))
	}
	return n
}

// OverlapID returns the id by which overlap policies count a run: that of its sentinel, or one that no stored
// sentinel has, for the runs of an agent or of models with their own definition of that id.
func OverlapID(info run.Info) sentinels.ID {
	if info.OfStored() {
		return info.Sentinel
	}
	return sentinels.ID(info.By + "/" + string(info.Sentinel))
}

// admitHeld returns the error limit for the start of a run that counts for an agent or for models, if
// their unfinished runs are too many, or were started with too much. The index counts them,
// so that the count is right after a restart. A child that a step starts counts, and waits instead, see [share].
// leave is called when the index has the run.
func (ex *Executor) admitHeld(ctx context.Context, info *run.Info, bounded bool) (leave func(), err error) {
	if !bounded {
		return func() {}, nil
	}
	leave, err = ex.admission.Enter(ctx, fairqueue.Of(info.By))
	if err != nil {
		return nil, err
	}
	others := ex.opt.Index.HeldBy(info.By)
	runs, bytes := others.Runs+1, others.StartBytes+info.StartBytes
	limits := ex.svc.Limits
	refused := &abi.Error{Code: abi.Limit, Permanent: true, Hint: "stop runs that are not needed, or wait until some have ended; a person may raise "}
	switch {
	case runs > limits.AgentRuns:
		refused.Message = fmt.Sprintf("start %q: %s has %d unfinished runs, at most %d (limits.agentRuns)", info.Sentinel, info.By, runs-1, limits.AgentRuns)
		refused.Hint += "limits.agentRuns"
	case bytes > limits.AgentBytes:
		refused.Message = fmt.Sprintf("start %q: the unfinished runs of %s have %d KiB of variables, inputs and events with this one, at most %d KiB (limits.agentBytes)",
			info.Sentinel, info.By, bytes>>10, limits.AgentBytes>>10)
		refused.Hint += "limits.agentBytes"
	default:
		return leave, nil
	}
	leave()
	return nil, refused
}
