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

	settled chan struct{} // closed when the next call is settled; nil if no caller waits
}

type account struct {
	run       sentinels.RunID
	above     *account // nil at the root
	budget    sentinels.Budget
	extension run.LimitExtension
	spent     sentinels.Usage // of the run and all below it
	reserved  sentinels.Usage
	calls     int // calls under way of the run itself
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

// MinReply is the smallest limit of a reply, in tokens, that a reservation is lowered
// to. A shorter reply is rarely of use.
const MinReply = 256

// A Reservation is the worst case of a model call.
type Reservation struct {
	Model     string // provider/model, for errors
	Worst     sentinels.Usage
	OutputUSD float64 // price of one output token, part of Worst.CostUSD
	Priced    bool    // Worst.CostUSD is known
}

// withOutput returns the worst case with another limit of the reply.
func (r Reservation) withOutput(tokens int64) Reservation {
	r.Worst.CostUSD -= float64(r.Worst.OutputTokens-tokens) * r.OutputUSD
	r.Worst.OutputTokens = tokens
	return r
}

// least returns the smallest worst case that the reservation may be lowered to.
func (r Reservation) least() Reservation {
	return r.withOutput(min(r.Worst.OutputTokens, MinReply))
}

// A Limit is a budget that a reservation would exceed.
type Limit struct {
	Run  sentinels.RunID // whose budget it is: the run itself or one above
	Name string          // such as budget.tokens
	Text string          // for people
	Hint string          // likewise
	// Settled is not nil if only calls under way stand against the reservation. It is closed
	// when one of them has ended and may have cost less than it had reserved.
	Settled <-chan struct{}
}

// Reserve reserves the worst case of a call in the accounts of a run and all above it,
// and returns what it has reserved. If the budgets have less left, that is a worst case
// with a lower limit of the reply, but of at least [MinReply] tokens. If not even that
// is left, it reserves nothing and returns the limit that would be exceeded, which may be
// one that only calls under way keep. The error
// is denied for a model without a known price in a tree with a cost budget.
func (t *Tree) Reserve(run sentinels.RunID, r Reservation) (granted sentinels.Usage, limit *Limit, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for acc := t.of(run); acc != nil; acc = acc.above {
		if acc.budget.CostUSD > 0 && !r.Priced {
			return sentinels.Usage{}, nil, &abi.Error{
				Code: abi.Denied, Permanent: true,
				Message: fmt.Sprintf("the run has a cost budget, and the price of model %s is not known", r.Model),
				Hint:    "configure the model's price, or use a budget of tokens or calls",
			}
		}
		if limit := acc.exceeds(acc.reserved, r.least().Worst); limit != nil {
			if acc.exceeds(sentinels.Usage{}, r.least().Worst) == nil && !t.within(run) {
				if t.settled == nil {
					t.settled = make(chan struct{})
				}
				limit.Settled = t.settled
			}
			return sentinels.Usage{}, limit, nil
		}
		r = r.withOutput(acc.output(r))
	}
	t.reserve(run, r.Worst, 1)
	return r.Worst, nil, nil
}

// within reports whether a run above has a call under way: the run may be the one that answers
// it, such as the turn of a plugin's model, and would wait for itself. The caller holds mu.
func (t *Tree) within(run sentinels.RunID) bool {
	for acc := t.of(run); acc != nil && acc.above != nil; acc = acc.above {
		if acc.above.calls > 0 {
			return true
		}
	}
	return false
}

// reserve adds calls of a run with their worst case. The caller holds mu.
func (t *Tree) reserve(run sentinels.RunID, worst sentinels.Usage, calls int) {
	if acc := t.of(run); acc != nil {
		acc.calls += calls
	}
	t.each(run, func(acc *account) { acc.reserved.Add(worst) })
}

// output returns the limit of the reply that the account has left for a call, whose
// least worst case it can pay.
func (a *account) output(r Reservation) int64 {
	used := a.spent
	used.Add(a.reserved)
	tokens := r.Worst.OutputTokens
	if b := a.budget.Tokens; b > 0 {
		tokens = min(tokens, max(b+a.extension.Tokens-used.Tokens(), 0)-r.Worst.InputTokens)
	}
	if b := a.budget.CostUSD; b > 0 && r.OutputUSD > 0 {
		left := b + a.extension.CostUSD - used.CostUSD - r.withOutput(0).Worst.CostUSD
		tokens = min(tokens, int64(left/r.OutputUSD))
	}
	return max(tokens, r.least().Worst.OutputTokens)
}

// each calls do for the accounts of a run and all above it. The caller holds mu.
func (t *Tree) each(run sentinels.RunID, do func(*account)) {
	for acc := t.of(run); acc != nil; acc = acc.above {
		do(acc)
	}
}

// exceeds returns the limit that a call would exceed beside what is reserved.
func (a *account) exceeds(reserved, least sentinels.Usage) *Limit {
	used := a.spent
	used.Add(reserved)
	after := used
	after.Add(least)
	tokens := after.Tokens()
	more := a.extension
	limit := func(name, text, hint string) *Limit {
		if reserved.Calls > 0 {
			text += fmt.Sprintf(", with the %d that are under way", reserved.Calls)
		}
		return &Limit{Run: a.run, Name: name, Text: name + " reached: " + text, Hint: hint}
	}
	switch b := a.budget; {
	case b.Calls > 0 && after.Calls > b.Calls+more.Calls:
		return limit(run.ReasonCalls, fmt.Sprintf("%d of %d model calls were made", used.Calls, b.Calls+more.Calls), "raise budget.calls")
	case b.Tokens > 0 && tokens > b.Tokens+more.Tokens:
		return limit(run.ReasonTokens, fmt.Sprintf("the next call takes at least %d tokens, %d of them input, and %d of %d are used",
			least.Tokens(), least.InputTokens, used.Tokens(), b.Tokens+more.Tokens),
			"raise budget.tokens, or send less: a shorter prompt, fewer tools"+shorterReply(least))
	case b.CostUSD > 0 && after.CostUSD > b.CostUSD+more.CostUSD:
		return limit(run.ReasonCost, fmt.Sprintf("the next call costs at least $%.4f, for %d tokens of input and a reply of %d, and $%.4f of $%.4f are used",
			least.CostUSD, least.InputTokens, least.OutputTokens, used.CostUSD, b.CostUSD+more.CostUSD),
			"raise budget.costUsd, choose a cheaper model, or send less: a shorter prompt, fewer tools"+shorterReply(least))
	}
	return nil
}

// shorterReply names the step's own limit of a reply: below [MinReply] only that lowers the
// worst case.
func shorterReply(least sentinels.Usage) string {
	return fmt.Sprintf("; a reply of fewer than %d tokens needs maxTokens in the step", least.OutputTokens)
}

// ReserveAgain reserves without regard to limits: the call was admitted before a crash
// and is made again.
func (t *Tree) ReserveAgain(run sentinels.RunID, worst sentinels.Usage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reserve(run, worst, 1)
}

// Settle replaces a reservation by what was spent.
func (t *Tree) Settle(run sentinels.RunID, worst, spent sentinels.Usage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	neg := sentinels.Usage{InputTokens: -worst.InputTokens, OutputTokens: -worst.OutputTokens, CostUSD: -worst.CostUSD, Calls: -worst.Calls}
	t.reserve(run, neg, -1)
	t.each(run, func(acc *account) { acc.spent.Add(spent) })
	if t.settled != nil {
		close(t.settled)
		t.settled = nil
	}
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
