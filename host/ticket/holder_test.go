package ticket_test

import (
	"context"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Without its token only a person ends the claim of another: the error names the claim.
func TestHolderNamesItsToken(t *testing.T) {
	d := open(t)
	d.create("a", ticket.Fields{})
	checkBy := func(token uint64, by string) error {
		return d.do(func(ctx context.Context, tx ticket.Tx) error { return d.s.CheckHolder(ctx, tx, "a", token, by) })
	}
	check := func(token uint64) error { return checkBy(token, "agent:ci") }
	if err := check(0); err != nil {
		t.Errorf("without a claim: %v", err)
	}
	_, token := d.claim(ticket.Claim{Agent: "worker-1", By: "agent:ci"})
	if err := check(0); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "ticket a is claimed by worker-1, claim 1") {
		t.Errorf("without the token: %v", err)
	}
	if err := check(token); err != nil {
		t.Error(err)
	}
	if err := check(token + 1); abi.CodeOf(err) != abi.Conflict {
		t.Errorf("with another token: %v", err)
	}
	for _, by := range []string{"agent:other", "worker-1", "run 1", "user", ""} {
		if err := checkBy(token, by); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "claim 1 is of agent:ci") {
			t.Errorf("the token in the hands of %q: %v", by, err)
		}
	}
}
