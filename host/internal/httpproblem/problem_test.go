package httpproblem_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/internal/httpproblem"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestRoundTrip checks that every code has an error status, and that an error is
// the same once written and read.
func TestRoundTrip(t *testing.T) {
	for _, code := range abi.Codes() {
		want := &abi.Error{Code: code, Message: "m", Field: "a.b", Hint: "h", RetryAfterMs: 1200, Permanent: true}
		rec := httptest.NewRecorder()
		httpproblem.Write(rec, fmt.Errorf("layer: %w", want))
		if rec.Code < 400 {
			t.Errorf("%s has status %d", code, rec.Code)
		}
		if got := rec.Header().Get("Retry-After"); got != "2" {
			t.Errorf("%s: Retry-After %q", code, got)
		}
		got := httpproblem.Read("it", rec.Code, rec.Header().Get("Content-Type"), rec.Body.Bytes())
		want.Message = "layer: m"
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", code, diff)
		}
	}
}

func TestMembers(t *testing.T) {
	cause := abi.New(abi.Conflict, "stale")
	err := fmt.Errorf("put: %w", &httpproblem.Error{
		Status: http.StatusPreconditionFailed, Instance: "urn:x", Revision: 7, Changes: json.RawMessage(`[1]`), Err: cause,
	})
	want := httpproblem.Problem{
		Title: "Precondition Failed", Status: 412, Detail: "put: stale", Instance: "urn:x", Code: abi.Conflict, Revision: 7,
		Changes: json.RawMessage(`[1]`),
	}
	if diff := cmp.Diff(want, httpproblem.Of(err)); diff != "" {
		t.Error(diff)
	}
	if !errors.Is(err, cause) {
		t.Error("the error does not wrap its cause")
	}
	if got := httpproblem.Of(errors.New("x")); got.Code != abi.Internal || got.Status != 500 {
		t.Errorf("an error without a code: %+v", got)
	}
}

// TestReadForeign checks the code of a proxy's response without problem details.
func TestReadForeign(t *testing.T) {
	for status, want := range map[int]abi.Code{
		401: abi.Denied, 403: abi.Denied, 404: abi.NotFound, 412: abi.Conflict, 413: abi.Limit, 415: abi.BadFields,
		429: abi.Unavailable, 500: abi.Internal, 502: abi.Unavailable, 504: abi.Timeout, 200: abi.Internal,
	} {
		if got := httpproblem.Read("a proxy", status, "text/html", []byte("<h1>")); got.Code != want {
			t.Errorf("status %d is %s, want %s", status, got.Code, want)
		}
	}
}
