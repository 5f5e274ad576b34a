package budget_test

import (
	"math"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime/internal/budget"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

func tokens(n int64) budget.Reservation {
	return budget.Reservation{Model: "p/m", Worst: sentinels.Usage{InputTokens: n, Calls: 1}, Priced: true}
}

// TestLimitOfParent: a child's calls count against the budgets above it, reservations
// count until they are settled, and an extension raises the limit.
func TestLimitOfParent(t *testing.T) {
	tree := budget.New()
	tree.Open("root", "", sentinels.Budget{Tokens: 100})
	tree.Open("child", "root", sentinels.Budget{Tokens: 1000})
	reserve := func(n int64) *budget.Limit {
		t.Helper()
		_, limit, err := tree.Reserve("child", tokens(n))
		if err != nil {
			t.Fatal(err)
		}
		return limit
	}
	if limit := reserve(60); limit != nil {
		t.Fatalf("the first call: %+v", limit)
	}
	if limit := reserve(60); limit == nil || limit.Run != "root" || limit.Name != "budget.tokens" || !strings.Contains(limit.Text, "60 of 100 are used") {
		t.Fatalf("beside a reservation: %+v", limit)
	}
	tree.Settle("child", tokens(60).Worst, sentinels.Usage{InputTokens: 10, Calls: 1})
	if limit := reserve(60); limit != nil {
		t.Fatalf("after the first call has settled: %+v", limit)
	}
	tree.Extend("root", run.LimitExtension{Tokens: 50})
	if limit := reserve(60); limit != nil {
		t.Fatalf("after the extension: %+v", limit)
	}
	tree.Close("child")
	if got, want := tree.Total("root"), (sentinels.Usage{InputTokens: 10, Calls: 1}); got != want {
		t.Errorf("the root has spent %+v, want %+v", got, want)
	}
}

// TestRunsBelowAnEndedRun: they count in the accounts above it.
func TestRunsBelowAnEndedRun(t *testing.T) {
	tree := budget.New()
	tree.Open("root", "", sentinels.Budget{Calls: 1})
	tree.Open("middle", "root", sentinels.Budget{})
	tree.Open("leaf", "middle", sentinels.Budget{})
	tree.Close("middle")
	tree.Charge("leaf", sentinels.Usage{Calls: 1})
	if _, limit, err := tree.Reserve("leaf", tokens(1)); err != nil || limit == nil || limit.Run != "root" {
		t.Errorf("got %+v, %v", limit, err)
	}
}

// TestEndedRoot: runs below it still count there, and have accounts of their own.
func TestEndedRoot(t *testing.T) {
	tree := budget.New()
	tree.Open("root", "", sentinels.Budget{Calls: 2})
	tree.Open("a", "root", sentinels.Budget{})
	tree.Close("root")
	tree.Open("b", "a", sentinels.Budget{})
	tree.Charge("b", sentinels.Usage{Calls: 2})
	for run, calls := range map[sentinels.RunID]int64{"root": 0, "a": 2, "b": 2} {
		if got := tree.Total(run).Calls; got != calls {
			t.Errorf("run %s and those below it: %d calls, want %d", run, got, calls)
		}
	}
	if _, limit, err := tree.Reserve("b", tokens(1)); err != nil || limit == nil || limit.Run != "root" {
		t.Errorf("got %+v, %v", limit, err)
	}
}

// TestSpentBeyondAllCounts: what is spent counts also where its sum is more than an integer holds.
func TestSpentBeyondAllCounts(t *testing.T) {
	for name, spent := range map[string][]sentinels.Usage{
		"input and output": {{InputTokens: 10, OutputTokens: math.MaxInt64 - 10, Calls: 1}, {InputTokens: 5000, Calls: 1}},
		"of calls":         {{OutputTokens: math.MaxInt64 - 10, Calls: 1}, {OutputTokens: 5000, Calls: 1}},
	} {
		tree := budget.New()
		tree.Open("root", "", sentinels.Budget{Tokens: 6000})
		for _, u := range spent {
			tree.Charge("root", u)
		}
		if got := tree.Total("root"); got.InputTokens < 0 || got.OutputTokens < 0 || got.Tokens() != math.MaxInt64 {
			t.Errorf("%s: %+v", name, got)
		}
		if _, limit, err := tree.Reserve("root", tokens(1)); err != nil || limit == nil || limit.Name != "budget.tokens" {
			t.Errorf("%s: the next call: %+v, %v", name, limit, err)
		}
	}
}

// TestUnknownPrice: a model without a known price cannot be used on a cost budget.
func TestUnknownPrice(t *testing.T) {
	tree := budget.New()
	tree.Open("root", "", sentinels.Budget{CostUSD: 1})
	_, _, err := tree.Reserve("root", budget.Reservation{Model: "p/m", Worst: sentinels.Usage{Calls: 1}})
	if abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "model p/m") {
		t.Errorf("got %v", err)
	}
}

// Specification: "if the worst case exceeds what is left, the call goes out with a lower
// cap while at least 256 tokens remain".
func TestSpecLowerLimitOfAReply(t *testing.T) {
	call := budget.Reservation{Model: "p/m", Priced: true, OutputUSD: 0.001, Worst: sentinels.Usage{InputTokens: 100, OutputTokens: 1000, CostUSD: 1.1, Calls: 1}}
	short := call
	short.Worst.OutputTokens, short.Worst.CostUSD = 100, 0.2
	for _, tt := range []struct {
		name          string
		root, child   sentinels.Budget
		call          budget.Reservation
		output        int64
		usd           float64
		limit, text   string
		besidesTokens int64 // reserved before
	}{
		{name: "all is left", root: sentinels.Budget{Tokens: 1100, CostUSD: 1.1}, call: call, output: 1000, usd: 1.1},
		{name: "tokens", root: sentinels.Budget{Tokens: 500}, call: call, output: 400, usd: 0.5},
		{name: "tokens, the least", root: sentinels.Budget{Tokens: 356}, call: call, output: 256, usd: 0.356},
		{name: "tokens, too few", root: sentinels.Budget{Tokens: 355}, call: call, limit: "budget.tokens",
			text: "budget.tokens reached: the next call takes at least 356 tokens, 100 of them input, and 0 of 355 are used"},
		{name: "cost", root: sentinels.Budget{CostUSD: 0.4505}, call: call, output: 350, usd: 0.45},
		{name: "cost, too little", root: sentinels.Budget{CostUSD: 0.3}, call: call, limit: "budget.costUsd",
			text: "budget.costUsd reached: the next call costs at least $0.3560, for 100 tokens of input and a reply of 256, and $0.0000 of $0.3000 are used"},
		{name: "the smaller of two budgets", root: sentinels.Budget{Tokens: 500}, child: sentinels.Budget{Tokens: 400}, call: call, output: 300, usd: 0.4},
		{name: "the smaller one above", root: sentinels.Budget{Tokens: 400}, child: sentinels.Budget{CostUSD: 0.9}, call: call, output: 300, usd: 0.4},
		{name: "the step asks for less than 256", root: sentinels.Budget{Tokens: 200}, call: short, output: 100, usd: 0.2},
		{name: "and that is too much", root: sentinels.Budget{Tokens: 199}, call: short, limit: "budget.tokens", text: "takes at least 200 tokens"},
		{name: "beside another call", root: sentinels.Budget{Tokens: 500}, call: call, besidesTokens: 40, output: 360, usd: 0.46},
		{name: "too much beside another call", root: sentinels.Budget{Tokens: 500}, call: call, besidesTokens: 300, limit: "budget.tokens",
			text: "300 of 500 are used, with the 1 that are under way"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tree := budget.New()
			tree.Open("root", "", tt.root)
			tree.Open("child", "root", tt.child)
			if tt.besidesTokens > 0 {
				if _, limit, err := tree.Reserve("root", tokens(tt.besidesTokens)); limit != nil || err != nil {
					t.Fatal(limit, err)
				}
			}
			granted, limit, err := tree.Reserve("child", tt.call)
			switch {
			case err != nil:
				t.Fatal(err)
			case tt.limit != "":
				if limit == nil || limit.Name != tt.limit || !strings.Contains(limit.Text, tt.text) || limit.Hint == "" || limit.Name != run.ReasonCalls && !strings.Contains(limit.Hint, "needs maxTokens in the step") {
					t.Errorf("limit %+v", limit)
				}
			case limit != nil || granted.OutputTokens != tt.output || math.Abs(granted.CostUSD-tt.usd) > 1e-9 || granted.InputTokens != 100 || granted.Calls != 1:
				t.Errorf("granted %+v, limit %+v", granted, limit)
			}
		})
	}
}

// TestWaitForCallsUnderWay: a call that only reservations keep out waits for them; one that what
// was spent keeps out does not.
func TestWaitForCallsUnderWay(t *testing.T) {
	tree := budget.New()
	tree.Open("root", "", sentinels.Budget{Tokens: 100})
	reserve := func(n int64) *budget.Limit {
		t.Helper()
		_, limit, err := tree.Reserve("root", tokens(n))
		if err != nil {
			t.Fatal(err)
		}
		return limit
	}
	if limit := reserve(90); limit != nil {
		t.Fatal(limit)
	}
	limit := reserve(60)
	if limit == nil || limit.Settled == nil {
		t.Fatalf("beside a call under way: %+v", limit)
	}
	if other := reserve(101); other == nil || other.Settled != nil {
		t.Errorf("a call that never fits: %+v", other)
	}
	select {
	case <-limit.Settled:
		t.Fatal("settled before the call has ended")
	default:
	}
	tree.Settle("root", tokens(90).Worst, sentinels.Usage{InputTokens: 10, Calls: 1})
	<-limit.Settled
	if limit := reserve(60); limit != nil {
		t.Errorf("after it has cost less: %+v", limit)
	}
	tree.Settle("root", tokens(60).Worst, sentinels.Usage{InputTokens: 60, Calls: 1})
	if limit := reserve(60); limit == nil || limit.Settled != nil {
		t.Errorf("after all was spent: %+v", limit)
	}
}

// TestNoCallWaitsForTheOneThatItAnswers: a run below one with a call under way may be what
// answers that call.
func TestNoCallWaitsForTheOneThatItAnswers(t *testing.T) {
	tree := budget.New()
	tree.Open("root", "", sentinels.Budget{Tokens: 100})
	tree.Open("answer", "root", sentinels.Budget{})
	if _, limit, err := tree.Reserve("root", tokens(90)); limit != nil || err != nil {
		t.Fatal(limit, err)
	}
	if _, limit, err := tree.Reserve("answer", tokens(60)); limit == nil || limit.Settled != nil || err != nil {
		t.Errorf("%+v, %v", limit, err)
	}
}
