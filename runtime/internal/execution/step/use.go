package step

import (
	"fmt"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// attemptUse counts what the guest has used of the attempt's limits, ABI clause A8.1.
// It starts at the counts of the checkpoint, and a replay counts repeated calls again,
// so the counts do not depend on the number of replays.
type attemptUse struct {
	logs    int64 // bytes of log requests, including dropped lines
	dropped int   // number of dropped log lines
	stored  int64 // bytes of requests that set variables or make checkpoints
}

// countStored counts a request of size bytes if it sets variables or makes a
// checkpoint. It returns the error limit if the attempt exceeds
// [run.Limits.StoredBytes]. This count, unlike CallBytes, does not start again at a
// checkpoint.
func (a *attempt) countStored(function string, size int) error {
	if function != abi.FuncCheckpoint && function != abi.FuncVar {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used.stored += int64(size)
	if most := a.svc.Limits.StoredBytes; a.used.stored > most {
		// Permanent: another attempt would use as much.
		return &abi.Error{
			Code: abi.Limit, Permanent: true, Message: fmt.Sprintf("step %s set more than %d bytes of variables and checkpoints, which is the limit of an attempt", a.address, most),
			Hint: "set less, or less often, or divide the work into several steps",
		}
	}
	return nil
}

// countLog counts a log request and reports whether the line is dropped.
func (a *attempt) countLog(size int) (drop bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	limits := a.svc.Limits
	a.used.logs += int64(size)
	if a.guestLogs < limits.LogLines && a.used.logs <= limits.LogBytes {
		return false
	}
	a.used.dropped++
	return true
}

// reportDropped logs how many log lines of the guest were dropped.
func (a *attempt) reportDropped() {
	a.mu.Lock()
	dropped := a.used.dropped
	a.mu.Unlock()
	if dropped > 0 {
		limits := a.svc.Limits
		a.log("warn", fmt.Sprintf("%d log lines dropped: the limit of an attempt is %d lines and %d bytes", dropped, limits.LogLines, limits.LogBytes))
	}
}
