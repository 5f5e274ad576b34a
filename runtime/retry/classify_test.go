package retry_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime/retry"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

func TestClassifyCode(t *testing.T) {
	for _, c := range []struct {
		code      abi.Code
		msg       string
		want      string
		permanent bool
	}{
		{abi.BadFields, "connect ETIMEDOUT", "syntax/fields", true},
		{abi.Denied, "rate limit", "manual_review/denied", true},
		{abi.NotFound, "x", "logic/not_found", false},
		{abi.Conflict, "x", "logic/conflict", false},
		{abi.Timeout, "x", "timeout/execution", false},
		{abi.Timeout, "connect ECONNREFUSED", "timeout/execution", false},
		{abi.Cancelled, "timed out", "manual_review/cancelled", true},
		{abi.Unavailable, "x", "api/unavailable", false},
		{abi.Unavailable, "HTTP 429", "api/rate", false},
		{abi.Unavailable, "connection refused", "api/network", false},
		{abi.Unavailable, "no such file", "api/unavailable", false},
		{abi.Limit, "50 children alive at once", "manual_review/limit", true},
		{abi.Limit, "maximum context length is 8192", "context/tokens", false},
		{abi.Trap, "unreachable", "runtime/trap", false},
		{abi.Memory, "x", "runtime/memory", false},
		{abi.Output, "x", "logic/output", false},
		{abi.Plugin, "HTTP 500", "api/server_error", false},
		{abi.Plugin, "odd", "manual_review/unclassified", false},
		{abi.Plugin, "", "manual_review/empty_error", false},
		{abi.Interrupted, "x", "manual_review/interrupted", true},
		{abi.Internal, "odd", "runtime/internal", false},
		{abi.Internal, "no space left on device", "runtime/general", false},
		{"newer", "ETIMEDOUT", "timeout/general", false},
	} {
		got := retry.ClassifyError(fmt.Errorf("step: %w", abi.New(c.code, c.msg)))
		if name(got) != c.want || got.Permanent != c.permanent {
			t.Errorf("%s %q: %s permanent %v, want %s %v", c.code, c.msg, name(got), got.Permanent, c.want, c.permanent)
		}
	}
	for _, code := range abi.Codes() {
		if c := retry.ClassifyError(&abi.Error{Code: code, Message: "socket hang up", Permanent: true}); !c.Permanent {
			t.Errorf("%s: a permanent error is not classified as permanent", code)
		}
	}
}

func TestClassifyError(t *testing.T) {
	expired, cancel := context.WithTimeout(context.Background(), 0)
	defer cancel()
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, "/"},
		{errors.New("odd"), "manual_review/unclassified"},
		{expired.Err(), "timeout/general"},
		{fmt.Errorf("odd: %w", os.ErrDeadlineExceeded), "timeout/general"},
		{fmt.Errorf("rate limit: %w", context.Canceled), "manual_review/cancelled"},
		{errors.Join(errors.New("odd"), abi.New(abi.Trap, "x")), "runtime/trap"},
	} {
		if got := name(retry.ClassifyError(c.err)); got != c.want {
			t.Errorf("%v: %s, want %s", c.err, got, c.want)
		}
	}
	if got := retry.ClassifyError(nil); got != (retry.Classification{}) {
		t.Errorf("nil: %+v", got)
	}
}
