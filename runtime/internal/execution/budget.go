package execution

import (
	"context"
	"errors"

	"github.com/sentinel-runtime/sentinel/runtime/external"
	"github.com/sentinel-runtime/sentinel/runtime/internal/budget"
	"github.com/sentinel-runtime/sentinel/runtime/internal/execution/step"
	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// openBudget registers the budget of a definition for the run.
func (r *liveRun) openBudget(def *sentinels.Definition) {
	parent := sentinels.RunID("")
	if r.parent != nil {
		parent = r.parent.id
	}
	r.budget.Open(r.id, parent, def.Budget)
}

// Reserve implements [step.Budget]. The limit may be that of a run above, which then
// pauses or ends in place of this one.
func (r *liveRun) Reserve(ctx context.Context, q external.ModelQuote) (granted sentinels.Usage, err error) {
	for {
		granted, exceeded, err := r.budget.Reserve(r.id, budget.Reservation{Model: q.Provider + "/" + q.Model, Worst: q.Worst, OutputUSD: q.OutputUSD, Priced: q.Priced})
		if err != nil || exceeded == nil {
			return granted, err
		}
		if exceeded.Settled != nil { // a call under way may cost less than it has reserved
			select {
			case <-exceeded.Settled:
				continue
			case <-ctx.Done():
				return granted, context.Cause(ctx)
			}
		}
		owner := r
		if exceeded.Run != r.id {
			if live := r.ex.live(exceeded.Run); live != nil {
				owner = live
			}
		}
		// The run whose limit it is pauses or ends.
		if err := owner.atLimit(ctx, &step.LimitError{Limit: exceeded.Name, Text: exceeded.Text, Hint: exceeded.Hint}); err != nil {
			if !errors.As(err, new(*step.LimitError)) {
				return granted, err
			}
			owner.cancel(err)
			if owner != r { // this also cancels its descendants, of which r is one
				<-ctx.Done()
				return granted, context.Cause(ctx)
			}
			return granted, err
		}
		if err := r.WaitWhilePaused(ctx); err != nil {
			return granted, err
		}
	}
}

// Turn is Runtime.Turn of package runtime.
func (ex *Executor) Turn(ctx context.Context, id sentinels.RunID, turn sentinels.Turn, delta func(string)) (sentinels.Reply, error) {
	if ex.svc.Models == nil {
		return sentinels.Reply{}, failure.New(abi.Unavailable, "this host provides no models")
	}
	r := ex.live(id)
	if r == nil {
		reply, err := ex.svc.Models.Turn(ctx, turn, delta)
		step.MakeReadable(&reply)
		return reply, err
	}
	quote, err := ex.svc.Models.Quote(ctx, turn)
	if err != nil {
		return sentinels.Reply{}, err
	}
	quote.Worst.Calls = 1
	granted, err := r.Reserve(ctx, quote)
	if err != nil {
		return sentinels.Reply{}, err
	}
	if granted.OutputTokens < quote.Worst.OutputTokens {
		turn.Model, turn.MaxTokens = quote.Provider+"/"+quote.Model, granted.OutputTokens
		r.Report(run.Progress{Event: run.OnLog, Level: "warn", Iteration: r.Iteration(), Message: step.LoweredText(quote, granted.OutputTokens)})
	}
	reply, err := ex.svc.Models.Turn(ctx, turn, delta)
	step.MakeReadable(&reply)
	spent := step.TurnUsage(reply.Usage)
	r.Write(step.Commit{Lazy: true}, &journal.Record{Kind: journal.Signal, Signal: &journal.SignalBody{Type: "usage", Usage: &spent}})
	if err != nil && ctx.Err() != nil {
		spent = granted
	}
	r.budget.Settle(r.id, granted, spent)
	return reply, err
}

// ReserveAgain implements [step.Budget].
func (r *liveRun) ReserveAgain(worst sentinels.Usage) { r.budget.ReserveAgain(r.id, worst) }

// Settle implements [step.Budget].
func (r *liveRun) Settle(worst, spent sentinels.Usage) { r.budget.Settle(r.id, worst, spent) }

// Charge implements [step.Budget].
func (r *liveRun) Charge(spent sentinels.Usage) { r.budget.Charge(r.id, spent) }
