package budget_test

import (
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
		limit, err := tree.Reserve("child", tokens(n))
		if err != nil {
			t.Fatal(err)
		}
		return limit
	}
	if limit := reserve(60); limit != nil {
		t.Fatalf("the first call: %+v", limit)
	}
	if limit := reserve(60); limit == nil || limit.Run != "root" || limit.Name != "budget.tokens" || !strings.Contains(limit.Text, "60 of the 100") {
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
	if limit, err := tree.Reserve("leaf", tokens(1)); err != nil || limit == nil || limit.Run != "root" {
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
	if limit, err := tree.Reserve("b", tokens(1)); err != nil || limit == nil || limit.Run != "root" {
		t.Errorf("got %+v, %v", limit, err)
	}
}

// TestUnknownPrice: a model without a known price cannot be used on a cost budget.
func TestUnknownPrice(t *testing.T) {
	tree := budget.New()
	tree.Open("root", "", sentinels.Budget{CostUSD: 1})
	_, err := tree.Reserve("root", budget.Reservation{Model: "p/m", Worst: sentinels.Usage{Calls: 1}})
	if abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "model p/m") {
		t.Errorf("got %v", err)
	}
}
