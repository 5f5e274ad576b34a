package step

// # Calls in doubt
//
// A call whose start is durable and whose end is not may or may not have had its effect.
// The first setting of onInterrupt decides about it: of the step, of the definition, of
// the resume, of the start of the run, of the host. Without a setting, a call that is safe
// to repeat is made again, and a person decides about any other.
//
//	retry   the start is recorded again, and the call is made again
//	skip    the call ends without a result, or with one that the person supplies
//	fail    the call ends with the error interrupted
//	ask     a person decides: retry, skip or fail
//
// Background processes that died with the host are handled in the same way, see
// background.go of package execution. The reservation of a model call in doubt is charged
// in any case, because the provider may have charged for it.

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// resolveDoubt decides about a call in doubt and acts on the decision.
func (a *attempt) resolveDoubt(ctx context.Context, c *call, do callWork) {
	choice := DoubtChoice(a.run.OnInterrupt(a.step.OnInterrupt), c.start.Safe)
	a.log("warn", fmt.Sprintf("%s was interrupted when the host ended: %s", c.displayName(), choice))
	a.startWork(ctx, c, nil, func(ctx context.Context, c *call) (callEnd, error) {
		verdict, result := string(choice), json.RawMessage(nil)
		if choice == sentinels.InterruptAsk {
			v, err := a.awaitDecision(ctx, c, run.PendingDecision{Kind: run.DecisionDoubt, Prompt: fmt.Sprintf(
				"%s of step %s was interrupted when the host ended; it may or may not have had its effect", c.displayName(), a.address)})
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
			end = callEnd{err: &abi.Error{Code: abi.Interrupted, Permanent: true, Message: c.displayName() + " was interrupted when the host ended"}}
		}
		end.body.Decided = verdict
		return end, err
	})
}

// startAgain records the start of a call again before the call is repeated. If the
// repetition is interrupted too, it is a new doubt that needs a new decision.
func (a *attempt) startAgain(ctx context.Context, c *call) error {
	if err := a.takeTurn(ctx); err != nil {
		return err
	}
	t := a.write(false, a.n, &journal.Record{Kind: journal.CallStart, CallStart: c.start})
	return t.Wait(ctx)
}

// displayName returns the name of a call that has a start record.
func (c *call) displayName() string { return CallName(c.start) }

// CallName returns the name of a call for display: the kind of its host function and
// its label.
func CallName(start *journal.CallStartBody) string {
	f, _ := hostFunctionOf(start.Function)
	if f.label == "" {
		return start.Function
	}
	return f.label + " " + start.Label + requested(start)
}

// requested returns where a request over HTTP goes, for the person who decides about it; without
// its query, which often has keys. It is "" for any other call.
func requested(start *journal.CallStartBody) string {
	if start.Label != sentinels.RequestCommand {
		return ""
	}
	var request struct{ Params struct{ Method, URL string } }
	if json.Unmarshal(start.Request.JSON, &request) != nil || request.Params.URL == "" {
		return "" // it is large, and stored elsewhere
	}
	url, _, _ := strings.Cut(request.Params.URL, "?")
	return " (" + Clip([]byte(strings.TrimSpace(request.Params.Method+" "+url))) + ")"
}

// DoubtChoice returns what happens to a call in doubt: the setting, see
// [Decisions.OnInterrupt], or if that is empty, retry for a call that is safe to
// repeat, else ask.
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
// resolves the doubt if the call acts outside the store.
func (a *attempt) resumeCall(ctx context.Context, c *call) error {
	f, _ := hostFunctionOf(c.function)
	if f.work == nil || c.start == nil {
		return failure.New(abi.Internal, "call %d of step %s, %s, has no end and cannot be resumed", c.seq, a.address, c.function)
	}
	if f.resume != nil {
		f.resume(a, c)
	}
	c.repeated = true
	do := a.workOf(c)
	if f.permitted {
		do = a.withPermissionCheck(do)
	}
	if c.start.Effect && !f.repeatable && a.svc.MayHaveBegun(ctx, c.start, a.n, func() string { return a.callKey(c) }) {
		a.resolveDoubt(ctx, c, do)
	} else {
		a.startWork(ctx, c, nil, do)
	}
	return nil
}

// MayHaveBegun reports whether the effect of a call in doubt may have begun. One that waited
// in a queue when the host ended has not. attempt is that of the step, and key returns the idempotency
// key of the call.
func (s *Services) MayHaveBegun(ctx context.Context, start *journal.CallStartBody, attempt int, key func() string) bool {
	if start.Function != abi.FuncCommand || s.Commands == nil {
		return true
	}
	info, ok := s.Commands.Lookup(start.Label)
	if !ok || info.Began == nil {
		return true
	}
	began, err := info.Began(ctx, key(), attempt)
	return began || err != nil
}

// withPermissionCheck returns do with a check of the plugin's permissions before it:
// they may have been revoked since the call was made.
func (a *attempt) withPermissionCheck(do callWork) callWork {
	return func(ctx context.Context, c *call) (callEnd, error) {
		if e := a.denied(c); e != nil {
			return callEnd{err: e}, nil
		}
		return do(ctx, c)
	}
}
