package openfiles_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/openfiles"
)

func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		short := fmt.Errorf("start: %w", &os.PathError{Op: "pipe", Err: syscall.EMFILE})
		var waits []time.Duration
		calls := 0
		began := time.Now()
		err := openfiles.Retry(t.Context(), func(err error, wait time.Duration) {
			if !errors.Is(err, syscall.EMFILE) {
				t.Errorf("wait because of %v", err)
			}
			waits = append(waits, wait)
		}, func() error {
			if calls++; calls < 10 {
				return short
			}
			return os.ErrNotExist
		})
		if !errors.Is(err, os.ErrNotExist) || calls != 10 {
			t.Errorf("%v after %d calls", err, calls)
		}
		if len(waits) != 9 || waits[0] != 50*time.Millisecond || waits[8] != 5*time.Second {
			t.Errorf("waits %v", waits)
		}
		if took := time.Since(began); took < 15*time.Second || took > 25*time.Second {
			t.Errorf("took %v of the bubble's time", took)
		}
	})
}

func TestRetryEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(cause) })
		err := openfiles.Retry(ctx, func(error, time.Duration) {}, func() error { return syscall.ENFILE })
		if !errors.Is(err, cause) {
			t.Error(err)
		}
	})
}
