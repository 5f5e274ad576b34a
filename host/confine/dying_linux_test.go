package confine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/internal/namespacetest"
)

// A command whose processes the kernel takes long to end has its result before, and the next one begins behind their end. The
// kernel waits here for a process in the namespace of the command that its parent, this test, has not reaped.
func TestResultBeforeTheKernelIsDone(t *testing.T) {
	needNamespaces(t)
	c := command(t, "")
	c.Shell = "echo out; touch " + c.Root + "/begun; sleep 600" // no other has this line
	r := runner(t)
	p, err := r.Begin(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	awaitBegun(c)
	held := namespacetest.Join(t, launcherOf(t, c), p.Stop)
	p.Stop()
	if result, err := p.Wait(); err != nil || result.Limit != "" || string(result.Output) != "out\n" || result.ExitCode == 0 {
		t.Errorf("%v %s", err, describe(result))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Begin(ctx, command(t, "true")); !errors.Is(err, context.Canceled) {
		t.Errorf("the next command began beside it: %v", err)
	}
	_ = held.Wait() // it was killed
	if result, err := r.Run(t.Context(), command(t, "true")); err != nil || result.ExitCode != 0 {
		t.Errorf("%v %s", err, describe(result))
	}
}
