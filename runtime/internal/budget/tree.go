package budget

import (
	"fmt"
	"sync"

	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A Tree is the budgets and the usage of a tree of runs. Every run has an account
// below its parent's; its usage counts in all accounts above, so the budget of a
// child is a further limit and never more money. A model call reserves its worst case
// before it starts and settles what it has really cost.
//
// # Concurrency
//
// Safe for concurrent use.
type Tree struct {
	mu    sync.Mutex
	first *account                     // the first one that was opened, nil if it was closed: most trees have no other
	more  map[sentinels.RunID]*account // the others, nil if there was none
}

type account struct {
	run       sentinels.RunID
	above     *account // nil at the root
	budget    sentinels.Budget
	extension run.LimitExtension
	spent     sentinels.Usage // of the run and all below it
	reserved  sentinels.Usage
}

// New returns an empty tree.
func New() *Tree { return &Tree{} }

// of returns the account of a run, nil if it has none. The caller holds mu.
func (t *Tree) of(run sentinels.RunID) *account {
	if t.first != nil && t.first.run == run {
		return t.first
	}
	return t.more[run]
}

// Open opens the account of a run below that of its parent, "" for none. For a run
// that has an account it changes the budget, as after an edit.
func (t *Tree) Open(run, parent sentinels.RunID, budget sentinels.Budget) {
	t.mu.Lock()
	defer t.mu.Unlock()
	acc := t.of(run)
	if acc == nil {
		acc = &account{run: run, above: t.of(parent)}
		switch {
		case t.first == nil:
			t.first = acc
		case t.more == nil:
			t.more = map[sentinels.RunID]*account{run: acc}
		default:
			t.more[run] = acc
		}
	}
	acc.budget = budget
}

// Close removes the account of a run that has ended, or did not begin. What it has
// spent stays in the accounts above, and runs below it still count there.
func (t *Tree) Close(run sentinels.RunID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.first != nil && t.first.run == run {
		t.first = nil
		return
	}
	delete(t.more, run)
}

// A Reservation is the worst case of a model call.
type Reservation struct {
	Model  string // provider/model, for errors
	Worst  sentinels.Usage
	Priced bool // Worst.CostUSD is known
}

// A Limit is a budget that a reservation would exceed.
type Limit struct {
	Run  sentinels.RunID // whose budget it is: the run itself or one above
	Name string          // such as budget.tokens
	Text string          // for people
}

// Reserve reserves the worst case of a call in the accounts of a run and all above
// it, or in none: then it returns the limit that would be exceeded. The error is
// denied for a model without a known price in a tree with a cost budget.
func (t *Tree) Reserve(run sentinels.RunID, r Reservation) (*Limit, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for acc := t.of(run); acc != nil; acc = acc.above {
		if acc.budget.CostUSD > 0 && !r.Priced {
			return nil, &abi.Error{
				Code: abi.Denied, Permanent: true,
				Message: fmt.Sprintf("the run has a cost budget, and the price of model %s is not known", r.Model),
				Hint:    "configure the model's price, or use a budget of tokens or calls",
			}
		}
		if limit := acc.exceeds(r.Worst); limit != nil {
			return limit, nil
		}
	}
	t.each(run, func(acc *account) { acc.reserved.Add(r.Worst) })
	return nil, nil
}

// each calls do for the accounts of a run and all above it. The caller holds mu.
func (t *Tree) each(run sentinels.RunID, do func(*account)) {
	for acc := t.of(run); acc != nil; acc = acc.above {
		do(acc)
	}
}

func (a *account) exceeds(worst sentinels.Usage) *Limit {
	after := a.spent
	after.Add(a.reserved)
	after.Add(worst)
	tokens := after.InputTokens + after.OutputTokens
	more := a.extension
	switch b := a.budget; {
	case b.Calls > 0 && after.Calls > b.Calls+more.Calls:
		return &Limit{a.run, "budget.calls", fmt.Sprintf("budget.calls reached: %d model calls were made", a.spent.Calls)}
	case b.Tokens > 0 && tokens > b.Tokens+more.Tokens:
		return &Limit{a.run, "budget.tokens", fmt.Sprintf("budget.tokens reached: %d tokens are spent and the next call may take %d of the %d",
			a.spent.InputTokens+a.spent.OutputTokens, worst.InputTokens+worst.OutputTokens, b.Tokens+more.Tokens)}
	case b.CostUSD > 0 && after.CostUSD > b.CostUSD+more.CostUSD:
		return &Limit{a.run, "budget.costUsd", fmt.Sprintf("budget.costUsd reached: $%.4f are spent and the next call may cost $%.4f of the $%.4f",
			a.spent.CostUSD, worst.CostUSD, b.CostUSD+more.CostUSD)}
	}
	return nil
}

// ReserveAgain reserves without regard to limits: the call was admitted before a crash
// and is made again.
func (t *Tree) ReserveAgain(run sentinels.RunID, worst sentinels.Usage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.each(run, func(acc *account) { acc.reserved.Add(worst) })
}

// Settle replaces a reservation by what was spent.
func (t *Tree) Settle(run sentinels.RunID, worst, spent sentinels.Usage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	neg := sentinels.Usage{InputTokens: -worst.InputTokens, OutputTokens: -worst.OutputTokens, CostUSD: -worst.CostUSD, Calls: -worst.Calls}
	t.each(run, func(acc *account) {
		acc.reserved.Add(neg)
		acc.spent.Add(spent)
	})
}

// Charge adds what was spent before, as recovery does. A call in doubt is charged its
// worst case: the provider may have counted it.
func (t *Tree) Charge(run sentinels.RunID, spent sentinels.Usage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.each(run, func(acc *account) { acc.spent.Add(spent) })
}

// Total returns what a run and all below it have spent.
func (t *Tree) Total(run sentinels.RunID) sentinels.Usage {
	t.mu.Lock()
	defer t.mu.Unlock()
	if acc := t.of(run); acc != nil {
		return acc.spent
	}
	return sentinels.Usage{}
}

// Extend adds an extension to the budget of a run.
func (t *Tree) Extend(run sentinels.RunID, more run.LimitExtension) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if acc := t.of(run); acc != nil {
		acc.extension.Add(more)
	}
}
