package cli_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/cli"
	"github.com/sentinel-runtime/sentinel/host/control"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

func TestExitCode(t *testing.T) {
	wrapped := func(err error) error { return fmt.Errorf("run: %w", err) }
	for _, tt := range []struct {
		err  error
		want int
	}{
		{nil, cli.ExitOK},
		{errors.New("x"), cli.ExitFailed},
		{sentinels.Problems{{Message: "m"}}, cli.ExitInvalid},
		{wrapped(runtime.ErrHeld), cli.ExitHeld},
		{wrapped(control.ErrNoOwner), cli.ExitHeld},
		{context.DeadlineExceeded, cli.ExitTimedOut},
		{abi.New(abi.BadFields, "m"), cli.ExitUsage},
		{abi.New(abi.Denied, "m"), cli.ExitDenied},
		{wrapped(abi.New(abi.NotFound, "m")), cli.ExitNotFound},
		{abi.New(abi.Timeout, "m"), cli.ExitTimedOut},
		{abi.New(abi.Conflict, "m"), cli.ExitFailed},
		{errors.Join(abi.New(abi.Denied, "m"), errors.New("and closing")), cli.ExitDenied},
	} {
		if got := cli.ExitCode(tt.err); got != tt.want {
			t.Errorf("ExitCode(%v) = %d, want %d", tt.err, got, tt.want)
		}
	}
}
