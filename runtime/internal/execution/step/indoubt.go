package step

// # Calls in doubt
//
// A call whose start is durable and whose end is not may or may not have acted. What
// happens with it is decided by, in this order: onInterrupt of the step, of the
// definition, of the resume, of the start of the run, of the host ([Options]); else
// a call that may be repeated is made again, and a person is asked about any other.
//
//	retry   the call is recorded as started once more, and made
//	skip    the call ends without a result, or with the one that the person gives
//	fail    the call ends with the error interrupted
//	ask     a person decides: retry, skip or fail
//
// Background processes that died with the host are decided about in the same way,
// see background.go of package execution. A model call in doubt counts with its reservation, whatever is
// decided: the provider may have counted it.

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// doubt decides about a call that began and whose end is not known: by the
// step, the definition, the run, the host, or else by the call's own kind.
func (a *attempt) resolveDoubt(ctx context.Context, c *call, do callWork) {
	choice := DoubtChoice(a.run.OnInterrupt(a.step.OnInterrupt), c.start.Safe)
	a.log("warn", fmt.Sprintf("%s was cut off when the host ended: %s", c.displayName(), choice))
	a.startWork(ctx, c, nil, func(ctx context.Context, c *call) (callEnd, error) {
		verdict, result := string(choice), json.RawMessage(nil)
		if choice == sentinels.InterruptAsk {
			v, err := a.awaitDecision(ctx, c, run.PendingDecision{Kind: run.DecisionDoubt, Prompt: fmt.Sprintf(
				"%s of step %s was cut off when the host ended; it may or may not have been done", c.displayName(), a.address)})
			if err != nil {
				return callEnd{}, err
			}
			verdict, result = v.Verdict, v.Result
		}
		var end callEnd
		var err error
		switch verdict {
		case "retry":
			if err = a.startAgain(ctx, c); err == nil {
				end, err = do(ctx, c)
			}
		case "skip":
			end = callEnd{result: result}
		default:
			end = callEnd{err: &abi.Error{Code: abi.Interrupted, Permanent: true, Message: c.displayName() + " was cut off when the host ended"}}
		}
		end.body.Decided = verdict
		return end, err
	})
}

// startAgain writes the start of a call once more, before it is made again. If
// that is cut off too it is a new doubt: the decision about this one is used up.
func (a *attempt) startAgain(ctx context.Context, c *call) error {
	if err := a.takeTurn(ctx); err != nil {
		return err
	}
	t := a.write(false, a.n, &journal.Record{Kind: journal.CallStart, CallStart: c.start})
	return t.Wait(ctx)
}

// what names a call that has a start, for people.
func (c *call) displayName() string { return CallName(c.start) }

// CallName names a call for people: the kind of the host function and its label.
func CallName(start *journal.CallStartBody) string {
	f, _ := hostFunctionOf(start.Function)
	if f.label == "" {
		return start.Function
	}
	return f.label + " " + start.Label
}

// DoubtChoice returns what happens to a call in doubt: what was said, see
// [Decisions.OnInterrupt], or else what its kind allows.
func DoubtChoice(setting sentinels.Interrupt, safe bool) sentinels.Interrupt {
	switch {
	case setting != "":
		return setting
	case safe:
		return sentinels.InterruptRetry
	}
	return sentinels.InterruptAsk
}

// resumeCall continues a call that a crash interrupted: it does the work again, or
// is in doubt if the call acts outside the store.
func (a *attempt) resumeCall(ctx context.Context, c *call) error {
	f, _ := hostFunctionOf(c.function)
	if f.work == nil || c.start == nil {
		return errf(abi.Internal, "call %d of step %s, %s, has no end and cannot be resumed", c.seq, a.address, c.function)
	}
	if f.resume != nil {
		f.resume(a, c)
	}
	do := a.workOf(c)
	if f.permitted {
		do = a.withPermissionCheck(do)
	}
	if c.start.Effect && !f.repeatable {
		a.resolveDoubt(ctx, c, do)
	} else {
		a.startWork(ctx, c, nil, do)
	}
	return nil
}

// guarded is do, for a call that is resumed after a crash: its plugin may have
// lost its grant meanwhile.
func (a *attempt) withPermissionCheck(do callWork) callWork {
	return func(ctx context.Context, c *call) (callEnd, error) {
		if e := a.denied(c); e != nil {
			return callEnd{err: e}, nil
		}
		return do(ctx, c)
	}
}
