package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A ledger keeps the money of a run tree. Every run has an account below its
// parent's; what it spends counts in all accounts above, so a child's budget is
// a further cap and never new money. A call books its worst case before it
// starts and settles what it really cost.
//
// # Concurrency
//
// Safe for concurrent use.
type ledger struct {
	mu       sync.Mutex
	accounts map[sentinels.RunID]*account
}

type account struct {
	above    *account
	budget   sentinels.Budget
	room     journal.LimitExtension
	spent    sentinels.Usage // of the run and all below it
	reserved sentinels.Usage
	open     bool
}

func newLedger() *ledger { return &ledger{accounts: map[sentinels.RunID]*account{}} }

// cap opens the account of a run.
func (l *ledger) cap(r *run, budget sentinels.Budget) {
	l.mu.Lock()
	defer l.mu.Unlock()
	acc := l.accounts[r.id]
	if acc == nil {
		acc = &account{}
		l.accounts[r.id] = acc
	}
	acc.budget, acc.open = budget, true
	if r.parent != nil {
		acc.above = l.accounts[r.parent.id]
	}
}

// remove deletes the account of a run that did not begin.
func (l *ledger) remove(r *run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.accounts, r.id)
}

// release closes the account of a run that ended; what it spent stays in the
// accounts above.
func (l *ledger) release(r *run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if acc := l.accounts[r.id]; acc != nil {
		acc.open = false
	}
}

// reserve books the worst case of a call, or is what happens at a limit: an
// error that ends the run, or a pause until there is more room.
func (l *ledger) reserve(ctx context.Context, r *run, q ModelQuote) error {
	for {
		owner, limit, err := l.tryReserve(r, q)
		if err != nil {
			return err
		}
		if limit == nil {
			return nil
		}
		at := r
		if owner != r.id {
			if live := r.rt.live(owner); live != nil {
				at = live
			}
		}
		// Whose limit it is pauses or ends; the call gives up with ctx.
		if err := at.atLimit(ctx, limit); err != nil {
			if !errors.As(err, new(*limitError)) {
				return err
			}
			at.cancel(err)
			if at != r { // which stops all below it, this run too
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return err
		}
		if err := r.waitWhilePaused(ctx); err != nil {
			return err
		}
	}
}

// tryReserve reserves the worst case in all accounts, or in none: then it says whose
// limit stands in the way.
func (l *ledger) tryReserve(r *run, q ModelQuote) (sentinels.RunID, *limitError, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for acc := l.accounts[r.id]; acc != nil; acc = acc.above {
		if acc.budget.CostUSD > 0 && !q.Priced {
			return "", nil, &abi.Error{
				Code: abi.Denied, Permanent: true,
				Message: fmt.Sprintf("the run has a cost budget, and the price of model %s/%s is not known", q.Provider, q.Model),
				Hint:    "configure the model's price, or use a budget of tokens or calls",
			}
		}
		if limit := acc.exceeds(q.Worst); limit != nil {
			return l.owner(acc), limit, nil
		}
	}
	for acc := l.accounts[r.id]; acc != nil; acc = acc.above {
		acc.reserved.Add(q.Worst)
	}
	return "", nil, nil
}

func (l *ledger) owner(acc *account) sentinels.RunID {
	for id, a := range l.accounts {
		if a == acc {
			return id
		}
	}
	return ""
}

func (a *account) exceeds(worst sentinels.Usage) *limitError {
	after := a.spent
	after.Add(a.reserved)
	after.Add(worst)
	tokens := after.InputTokens + after.OutputTokens
	switch b := a.budget; {
	case b.Calls > 0 && after.Calls > b.Calls+a.room.Calls:
		return &limitError{"budget.calls", fmt.Sprintf("budget.calls reached: %d model calls were made", a.spent.Calls)}
	case b.Tokens > 0 && tokens > b.Tokens+a.room.Tokens:
		return &limitError{"budget.tokens", fmt.Sprintf("budget.tokens reached: %d tokens are spent and the next call may take %d of the %d",
			a.spent.InputTokens+a.spent.OutputTokens, worst.InputTokens+worst.OutputTokens, b.Tokens+a.room.Tokens)}
	case b.CostUSD > 0 && after.CostUSD > b.CostUSD+a.room.CostUSD:
		return &limitError{"budget.costUsd", fmt.Sprintf("budget.costUsd reached: $%.4f are spent and the next call may cost $%.4f of the $%.4f",
			a.spent.CostUSD, worst.CostUSD, b.CostUSD+a.room.CostUSD)}
	}
	return nil
}

// reserveAgain books a worst case without asking for room: the call was let through
// before a crash and is made again.
func (l *ledger) reserveAgain(r *run, worst sentinels.Usage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for acc := l.accounts[r.id]; acc != nil; acc = acc.above {
		acc.reserved.Add(worst)
	}
}

// settle replaces a reserved worst case by what was spent.
func (l *ledger) settle(r *run, worst, spent sentinels.Usage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	neg := sentinels.Usage{InputTokens: -worst.InputTokens, OutputTokens: -worst.OutputTokens, CostUSD: -worst.CostUSD, Calls: -worst.Calls}
	for acc := l.accounts[r.id]; acc != nil; acc = acc.above {
		acc.reserved.Add(neg)
		acc.spent.Add(spent)
	}
}

// charge adds what was spent before, as recovery does. A call in doubt is
// charged its worst case: the server may have counted it.
func (l *ledger) charge(id sentinels.RunID, spent sentinels.Usage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for acc := l.accounts[id]; acc != nil; acc = acc.above {
		acc.spent.Add(spent)
	}
}

// total returns what a run and all below it have spent.
func (l *ledger) total(id sentinels.RunID) sentinels.Usage {
	l.mu.Lock()
	defer l.mu.Unlock()
	if acc := l.accounts[id]; acc != nil {
		return acc.spent
	}
	return sentinels.Usage{}
}

// extend gives a run's budget more room.
func (l *ledger) extend(id sentinels.RunID, room journal.LimitExtension) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if acc := l.accounts[id]; acc != nil {
		acc.room.Calls += room.Calls
		acc.room.Tokens += room.Tokens
		acc.room.CostUSD += room.CostUSD
	}
}

// turnUsage returns what a turn has cost. One that failed may have cost something
// too.
func turnUsage(u sentinels.Usage) sentinels.Usage {
	u.Calls = 1
	return u
}
