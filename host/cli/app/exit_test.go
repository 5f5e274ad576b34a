package app_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
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
		{nil, app.ExitOK},
		{errors.New("x"), app.ExitFailed},
		{sentinels.Problems{{Message: "m"}}, app.ExitInvalid},
		{wrapped(runtime.ErrHeld), app.ExitHeld},
		{wrapped(control.ErrNoOwner), app.ExitHeld},
		{context.DeadlineExceeded, app.ExitTimedOut},
		{abi.New(abi.BadFields, "m"), app.ExitUsage},
		{abi.New(abi.Denied, "m"), app.ExitDenied},
		{wrapped(abi.New(abi.NotFound, "m")), app.ExitNotFound},
		{abi.New(abi.Timeout, "m"), app.ExitTimedOut},
		{abi.New(abi.Conflict, "m"), app.ExitFailed},
		{errors.Join(abi.New(abi.Denied, "m"), errors.New("and closing")), app.ExitDenied},
	} {
		if got := app.ExitCode(tt.err); got != tt.want {
			t.Errorf("ExitCode(%v) = %d, want %d", tt.err, got, tt.want)
		}
	}
}
