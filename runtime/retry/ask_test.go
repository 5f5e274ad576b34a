package retry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime/retry"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/role"
)

// TestClassifierGoesFirst: a classifier decides before the table, but not about an error
// that is permanent by its code.
func TestClassifierGoesFirst(t *testing.T) {
	var asked []role.Failure
	ask := retry.Classifier(func(_ context.Context, f role.Failure) (retry.Classification, bool) {
		asked = append(asked, f)
		return retry.Classification{Category: retry.Context, Subcategory: "own"}, strings.Contains(f.Message, "widget")
	})
	for _, tt := range []struct {
		err  error
		want string
		asks bool
	}{
		{errors.New("a widget timed out"), "context/own", true},
		{errors.New("connect ECONNREFUSED"), "api/network", true},
		{abi.New(abi.Trap, "a widget"), "context/own", true},
		{abi.New(abi.Denied, "a widget"), "manual_review/denied", false},
		{&abi.Error{Code: abi.Plugin, Message: "a widget", Permanent: true}, "manual_review/unclassified", false},
		{nil, "/", false},
	} {
		asked = nil
		if c := ask.Classify(t.Context(), role.SourceStep, tt.err); name(c) != tt.want || (len(asked) > 0) != tt.asks {
			t.Errorf("%v: %s, asked %+v", tt.err, name(c), asked)
		}
		if c := (retry.Classifier)(nil).Classify(t.Context(), role.SourceStep, tt.err); c != retry.ClassifyError(tt.err) {
			t.Errorf("%v without a classifier: %+v", tt.err, c)
		}
	}
}

// TestClassifierFields: what a classifier is given is bounded, and has the exit code that a
// message names.
func TestClassifierFields(t *testing.T) {
	for text, want := range map[string]int{
		`shell "npm test": exit code 3: b`: 3, `shell "echo \"exit code 7\"; exit 5": exit code 5: exit code 9`: 5, "exited with code 137": 137, "exit status 1": 1, "exit code: 255": 255, "Exit Code 2": 2,
		"exit code": -1, "code 3": -1, "exit code 3000": -1, strings.Repeat("é", role.MaxMessage) + " exit code 7": -1,
	} {
		var got role.Failure
		retry.Classifier(func(_ context.Context, f role.Failure) (retry.Classification, bool) {
			got = f
			return retry.Classification{}, false
		}).
			Classify(t.Context(), role.SourceTicket, fmt.Errorf("%w", errors.New(text)))
		code := -1
		if got.ExitCode != nil {
			code = *got.ExitCode
		}
		if code != want || len(got.Message) > role.MaxMessage || got.Source != role.SourceTicket || !strings.HasSuffix(text, got.Message[len(got.Message)-4:]) {
			t.Errorf("%.40q: exit code %d, want %d, %d bytes", text, code, want, len(got.Message))
		}
	}
}
