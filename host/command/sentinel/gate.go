package sentinel

import (
	"fmt"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// keepsGate returns the error of a call that would open a gate for the work of its own caller.
func (f family) keepsGate(call *command.Call, id string) error {
	if !call.Bounded() || f.opt.Gate == nil || !f.opt.Gate(sentinels.ID(id)) {
		return nil
	}
	return &abi.Error{Code: abi.Denied, Permanent: true, Field: "sentinelId",
		Message: fmt.Sprintf("%s: sentinel %q reviews the work of agents or sends messages about it, or is a part of one that does, so only a person pauses, stops, changes or deletes it", call.Command, id),
		Hint:    "work goes on without that: finished tickets wait for their review"}
}

// keepsGatesAround is keepsGate for a run and those above it, and with below for the active runs below it, all
// without the runs of which free is true.
func (f family) keepsGatesAround(call *command.Call, run runtime.RunInfo, below bool, free func(runtime.RunInfo) bool) error {
	if !call.Bounded() || f.opt.Gate == nil {
		return nil
	}
	kept := map[sentinels.ID]bool{} // was compared
	keeps := func(r runtime.RunInfo) error {
		if kept[r.Sentinel] || free(r) {
			return nil
		}
		kept[r.Sentinel] = true
		return f.keepsGate(call, string(r.Sentinel))
	}
	if err := keeps(run); err != nil {
		return err
	}
	if err := f.eachAbove(run, keeps); err != nil || !below {
		return err
	}
	return f.eachBelow(run, runtime.RunFilter{Statuses: runtime.Unfinished()}, keeps)
}

// executesFor reports whether a run executes for the agent behind a call.
func executesFor(call *command.Call, r runtime.RunInfo) bool {
	return call.ForAgent() && r.As == call.Who()
}
