package verify_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/host/verify"
)

// A check that leaves folders which are deeper than a path may be long, and whose rights it
// has taken away, is deleted like any other.
func TestFilesThatAreHardToDelete(t *testing.T) {
	if _, err := exec.LookPath("perl"); err != nil {
		t.Skip("no perl on this machine, which makes the folders")
	}
	dir := filepath.Join(t.TempDir(), "verify")
	v := verifier(t, func(o *verify.Options) { o.Dir = dir })
	line := `perl -e '$n = "x" x 200; for (1..25) { mkdir $n or die; chdir $n or die } mkdir "l" or die; mkdir "l/e" or die; chmod 0, "l"' && chmod 0 "$TMPDIR" .`
	r, c := one(t, v, repo(t, map[string]string{"a.txt": "a"}), `{"type": "test_pass", "verify": {"command": "`+strings.ReplaceAll(line, `"`, `\"`)+`"}}`)
	if r.Status != verify.Passing {
		t.Fatalf("the check: %+v", c)
	}
	v.Close()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "repositories" {
		t.Errorf("left: %v, %v", left, err)
	}
}

// What an earlier process has left and what cannot be removed keeps no ticket from being
// verified, and a store that was busy once is used by the next verification.
func TestVerificationsDoNotDependOnCleaningUp(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "verify")
	for _, path := range []string{"checkouts/left/tree", "removed/left"} {
		if err := os.MkdirAll(filepath.Join(dir, path), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "repositories"), nil, 0o600); err != nil { // no folder: it cannot be listed
		t.Fatal(err)
	}
	v := verifier(t, func(o *verify.Options) { o.Dir = dir })
	busy, begun := errors.New("the store is busy"), errors.New("the verification begins")
	answers := []error{busy, nil, begun, begun} // recovery, again, and the begin of the first and of another verification
	tickets := verify.Tickets{Verifier: v, Service: new(ticket.Service), Update: func(context.Context, func(ticket.Tx) error) error {
		err := answers[0]
		answers = answers[1:]
		return err
	}}
	for i, want := range []error{busy, begun, begun} {
		if _, err := tickets.Verify(t.Context(), verify.Request{TicketID: "T-1"}, "test", true, nil); !errors.Is(err, want) {
			t.Errorf("verification %d: %v, want %v", i, err, want)
		}
	}
	v.Close()
	for _, name := range []string{"checkouts", "removed"} {
		if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
