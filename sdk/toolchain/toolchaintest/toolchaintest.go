// Package toolchaintest decides whether a test that needs a compiler can run.
//
// A toolchain is present if it builds a probe. Without it a test is skipped, with a
// message about what is missing and how to install it; with
// SENTINEL_TOOLCHAINS=required, as in CI, the test fails instead.
package toolchaintest

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/toolchain"
)

// probeTimeout ends a compiler that hangs.
const probeTimeout = 5 * time.Minute

var (
	mu     sync.Mutex
	probed = map[string]error{}
)

// Probe returns the result of [toolchain.Language.Probe], which is computed once
// a process.
func Probe(l toolchain.Language) error {
	mu.Lock()
	defer mu.Unlock()
	err, done := probed[l.Name]
	if !done {
		ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
		defer cancel()
		err = l.Probe(ctx)
		probed[l.Name] = err
	}
	return err
}

// Need skips the test if l cannot be built here.
func Need(t testing.TB, l toolchain.Language) {
	t.Helper()
	if err := Probe(l); err != nil {
		Missing(t, err)
	}
}

// Missing ends a test that needs a tool: it fails if toolchains are required, else it is
// skipped. why has the tool and how to install it.
func Missing(t testing.TB, why error) {
	t.Helper()
	if Required() {
		t.Fatal(why)
	}
	t.Skipf("%v\n(make toolchains installs what all SDKs need)", why)
}

// Required reports whether the environment requires every toolchain.
func Required() bool { return os.Getenv("SENTINEL_TOOLCHAINS") == "required" }
