package runtime_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime"
)

// TestDurableStart: what a kill at the moment of the answer would leave has the run, for a start and for a fork.
func TestDurableStart(t *testing.T) {
	const source = `{"name":"told","steps":[{"type":"pause","event":"go"}],"loop":{"type":"once"}}`
	dir := t.TempDir()
	rt := openOn(t, newFakeHost(), dir)
	defer rt.Close()
	left := func() *runtime.Runtime {
		t.Helper()
		copied := t.TempDir()
		text, err := os.ReadFile(filepath.Join(dir, "store.db"))
		if err == nil {
			err = os.WriteFile(filepath.Join(copied, "store.db"), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		again := openOn(t, newFakeHost(), copied)
		t.Cleanup(func() { again.Close() })
		return again
	}
	id := start(t, rt, source, runtime.StartOptions{Durable: true})
	if _, err := left().Status(id); err != nil {
		t.Errorf("a start: %v", err)
	}
	fork, err := rt.Fork(t.Context(), id, runtime.ForkOptions{Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := left().Status(fork); err != nil {
		t.Errorf("a fork: %v", err)
	}
}
