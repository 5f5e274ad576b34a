package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// An Ask is something that a person has to decide before a run goes on.
type Ask struct {
	Call      string    `json:"call"` // names it for [Runtime.Decide]: path!number
	Kind      AskKind   `json:"kind"`
	Prompt    string    `json:"prompt"`
	Approvers []string  `json:"approvers,omitempty"` // empty: anybody
	Choices   []string  `json:"choices"`
	Since     time.Time `json:"since"`
}

// AskKind is approval or doubt.
type AskKind string

// The kinds of asks.
const (
	AskApproval AskKind = "approval" // approve or reject
	AskDoubt    AskKind = "doubt"    // retry, skip or fail a call that a crash cut off
)

func (k AskKind) choices() []string {
	if k == AskDoubt {
		return []string{"retry", "skip", "fail"}
	}
	return []string{"approve", "reject"}
}

type ask struct {
	Ask
	answer chan *journal.SignalBody // capacity 1
}

func (a *attempt) callName(c *call) string { return fmt.Sprintf("%s!%d", a.path, c.seq) }

// awaitVerdict asks a person and waits for the answer, the run being waiting
// meanwhile. A decision that is in the journal already answers at once.
func (a *attempt) awaitVerdict(ctx context.Context, c *call, what Ask) (*waitVerdict, error) {
	sig, at, err := a.run.askFor(ctx, a.callName(c), what)
	if err != nil {
		return nil, err
	}
	return &waitVerdict{Verdict: sig.Verdict, By: sig.By, At: at, Comment: sig.Comment, Result: sig.Result}, nil
}

func (r *run) askFor(ctx context.Context, name string, what Ask) (*journal.SignalBody, time.Time, error) {
	r.mu.Lock()
	if sig := r.verdicts[name]; sig != nil {
		delete(r.verdicts, name)
		r.mu.Unlock()
		return sig, time.Now().UTC(), nil
	}
	what.Call, what.Choices, what.Since = name, what.Kind.choices(), time.Now().UTC()
	q := &ask{Ask: what, answer: make(chan *journal.SignalBody, 1)}
	r.asks[name] = q
	r.mu.Unlock()
	r.asksChanged(&what)
	var sig *journal.SignalBody
	var err error
	select {
	case sig = <-q.answer:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	r.mu.Lock()
	delete(r.asks, name)
	r.mu.Unlock()
	if !over(ctx) {
		r.asksChanged(nil)
	}
	return sig, time.Now().UTC(), err
}

// asksChanged makes the run waiting while there is something to decide.
func (r *run) asksChanged(fresh *Ask) {
	r.mu.Lock()
	asks := make([]Ask, 0, len(r.asks))
	for _, q := range r.asks {
		asks = append(asks, q.Ask)
	}
	sort.Slice(asks, func(i, j int) bool { return asks[i].Call < asks[j].Call })
	r.info.Asks = asks
	status := r.info.Status
	switch {
	case status == sentinels.StatusPaused:
	case len(asks) > 0:
		status = sentinels.StatusWaiting
	default:
		status = sentinels.StatusRunning
	}
	r.mu.Unlock()
	r.setStatus(journal.StatusBody{Status: status}, fresh)
}

// A Decision answers an [Ask].
type Decision struct {
	Call    string          // the ask; may be empty when there is only one
	Verdict string          // one of the ask's choices
	By      string          // who decided
	Comment string          //
	Result  json.RawMessage // with skip: what the call is taken to have answered
}

// Decide answers an ask of a run. It returns when the decision is durable. For
// a run that no process carries out, the decision waits in its journal.
func (rt *Runtime) Decide(ctx context.Context, id sentinels.RunID, d Decision) error {
	info, err := rt.Status(id)
	if err != nil {
		return err
	}
	if d.Call == "" && len(info.Asks) == 1 {
		d.Call = info.Asks[0].Call
	}
	var found *Ask
	names := make([]string, 0, len(info.Asks))
	for i := range info.Asks {
		names = append(names, info.Asks[i].Call)
		if info.Asks[i].Call == d.Call {
			found = &info.Asks[i]
		}
	}
	switch {
	case len(names) == 0:
		return errf(abi.Conflict, "run %s has nothing to decide", id)
	case found == nil:
		return &abi.Error{Code: abi.NotFound, Message: fmt.Sprintf("run %s has no open question %q", id, d.Call), Hint: "open are " + strings.Join(names, ", ")}
	case !contains(found.Choices, d.Verdict):
		return &abi.Error{Code: abi.BadFields, Message: fmt.Sprintf("%q is no answer to %s", d.Verdict, found.Call), Hint: "the choices are " + strings.Join(found.Choices, ", ")}
	case len(found.Approvers) > 0 && !contains(found.Approvers, d.By):
		return errf(abi.Denied, "%q may not decide %s: the approvers are %s", d.By, found.Call, strings.Join(found.Approvers, ", "))
	}
	sig := &journal.SignalBody{Type: "decision", Call: d.Call, Verdict: d.Verdict, By: d.By, Comment: d.Comment, Result: d.Result}
	r := rt.live(id)
	if r == nil {
		return rt.signalStored(ctx, info, sig)
	}
	r.mu.Lock()
	q := r.asks[d.Call]
	delete(r.asks, d.Call) // the first answer counts
	r.mu.Unlock()
	if q == nil {
		return errf(abi.Conflict, "%s was decided already", d.Call)
	}
	if err := r.write(writeOptions{}, &journal.Record{Kind: journal.Signal, Signal: sig}).Wait(ctx); err != nil {
		return err
	}
	q.answer <- sig
	return nil
}

// doubt decides about a call that began and whose end is not known: by the
// step, the definition, the run, the host, or else by the call's own kind.
func (a *attempt) doubt(ctx context.Context, c *call, do performer) {
	choice := a.run.interruptChoice(a.step.OnInterrupt)
	if choice == "" {
		choice = sentinels.InterruptAsk
		if c.start.Safe {
			choice = sentinels.InterruptRetry
		}
	}
	a.log("warn", fmt.Sprintf("call %d, %s %s, was cut off when the host ended: %s", c.seq, c.function, c.start.Label, choice))
	a.perform(ctx, c, nil, func(ctx context.Context, c *call) (callEnd, error) {
		verdict, result := string(choice), json.RawMessage(nil)
		if choice == sentinels.InterruptAsk {
			v, err := a.awaitVerdict(ctx, c, Ask{Kind: AskDoubt, Prompt: fmt.Sprintf(
				"%s %s of step %s was cut off; it may or may not have been done", c.function, c.start.Label, a.address)})
			if err != nil {
				return callEnd{}, err
			}
			verdict, result = v.Verdict, v.Result
		}
		var end callEnd
		var err error
		switch verdict {
		case "retry":
			end, err = do(ctx, c)
		case "skip":
			end = callEnd{result: result}
		default:
			end = callEnd{err: &abi.Error{Code: abi.Interrupted, Permanent: true, Message: fmt.Sprintf("%s %s was cut off when the host ended", c.function, c.start.Label)}}
		}
		end.body.Decided = verdict
		return end, err
	})
}
