package step

import (
	"fmt"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// attemptUse is what the guest that executes an attempt has used of the attempt's
// budgets, ABI clause A8.1. A replay counts again what it repeats, and starts with what
// its checkpoint says, so an attempt has used the same however often it is replayed.
type attemptUse struct {
	logs    int64 // bytes of requests to log, those of dropped lines included
	dropped int   // log lines
	stored  int64 // bytes of requests that set variables or make checkpoints
}

// spend counts a request of size bytes that sets variables or makes a checkpoint, and
// returns the error limit for one that is beyond the budget of the attempt. These are
// counted apart from [Limits.CallBytes], which starts again at each checkpoint.
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

// spendLog counts a request to log, and reports whether the line is dropped.
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

// reportDropped logs how many lines of the guest that has ended were dropped.
func (a *attempt) reportDropped() {
	a.mu.Lock()
	dropped := a.used.dropped
	a.mu.Unlock()
	if dropped > 0 {
		limits := a.svc.Limits
		a.log("warn", fmt.Sprintf("%d log lines dropped: the limit of an attempt is %d lines and %d bytes", dropped, limits.LogLines, limits.LogBytes))
	}
}
