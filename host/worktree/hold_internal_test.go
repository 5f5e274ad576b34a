package worktree

import (
	"context"
	"testing"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A step looks at its claim when no other has the worktree: one that waits while the claim is
// completed is refused then, and does not move the branch that was compared.
func TestStepsLookAtTheirClaimUnderTheLock(t *testing.T) {
	var s *Service
	looked := 0
	s = New(Options{Dir: t.TempDir(), Git: "git", Ticket: func(_ context.Context, id string, _ uint64) (Ticket, error) {
		looked++
		if l := s.lock(s.nameOf(id)); l.TryLock() {
			l.Unlock()
			t.Error("the claim is looked at while another step may change it")
		}
		return Ticket{ID: id, Token: 1}, nil
	}})
	defer s.Close()
	if _, err := s.Commit(t.Context(), "T-1", 1, "work", ""); abi.CodeOf(err) != abi.NotFound || looked != 1 {
		t.Errorf("%d looks, %v", looked, err)
	}
	if err := s.Hold(t.Context(), "T-1", func(string) error {
		if s.lock("T-1").TryLock() {
			t.Error("a step may change the worktree that is held")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}
