package api_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// H1: a webhook gets what was sent, whatever its type, and needs no token.
func TestHook(t *testing.T) {
	var got triggers.Request
	var at []string
	s := open(t, api.Options{Hooks: hooksFunc(func(id sentinels.ID, trigger string, r triggers.Request) ([]triggers.Admission, error) {
		got, at = r, []string{string(id), trigger}
		return []triggers.Admission{{Outcome: triggers.Started, Run: "r1"}}, nil
	})})
	s.auth = ""
	a := s.do("POST", "/v1/hooks/nightly/push?x=1", "a=b", "Content-Type: application/x-www-form-urlencoded", "X-Signature: abc")
	if a.status != http.StatusAccepted || a.body != `{"admissions":[{"outcome":"started","run":"r1"}]}` {
		t.Errorf("%d %s", a.status, a.body)
	}
	if string(got.Body) != "a=b" || got.Method != http.MethodPost || got.Query["x"][0] != "1" || got.Header["X-Signature"][0] != "abc" {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff([]string{"nightly", "push"}, at); diff != "" {
		t.Error(diff)
	}
	if a := s.do("PUT", "/v1/hooks/nightly", ""); a.status != http.StatusAccepted || at[1] != "" {
		t.Errorf("%d %v", a.status, at)
	}
	if a := s.do("POST", "/v1/hooks/nightly", strings.Repeat("x", triggers.MaxBody+1)); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("too large: %d", a.status)
	}
	if a := s.do("DELETE", "/v1/hooks/nightly", ""); a.status != http.StatusUnauthorized {
		t.Errorf("DELETE without a token: %d", a.status)
	}
}

// A request to a webhook has the chain of the run whose step sent it.
func TestHookChain(t *testing.T) {
	var remote string
	var got triggers.Request
	s := open(t, api.Options{
		Hooks: hooksFunc(func(_ sentinels.ID, _ string, r triggers.Request) ([]triggers.Admission, error) {
			got = r
			return nil, nil
		}),
		Chain: func(_ int, from string) (int, []string) {
			remote = from
			return 2, []string{"a", "b"}
		},
	})
	s.auth = ""
	s.do("POST", "/v1/hooks/nightly", "{}")
	if got.Chain == nil || remote != "" {
		t.Fatalf("the chain was looked up before the request was accepted: %q", remote)
	}
	if hops, path := got.Chain(); hops != 2 || len(path) != 2 || remote == "" {
		t.Errorf("%d %v from %q", hops, path, remote)
	}
}

// H1: 200 says that everything was admitted before.
func TestHookRepeated(t *testing.T) {
	again := triggers.Admission{Outcome: triggers.Duplicate, Run: "r1"}
	for want, list := range map[int][]triggers.Admission{
		http.StatusOK:       {again, again},
		http.StatusAccepted: {again, {Outcome: triggers.Started, Run: "r2"}},
	} {
		s := open(t, api.Options{Hooks: hooksFunc(func(sentinels.ID, string, triggers.Request) ([]triggers.Admission, error) { return list, nil })})
		s.auth = ""
		if got := s.do("POST", "/v1/hooks/nightly", "{}"); got.status != want || !strings.Contains(got.body, `"run":"r1"`) {
			t.Errorf("%d %s, want %d", got.status, got.body, want)
		}
	}
}

// H2: a stranger learns nothing of what is behind a webhook.
func TestHookSecrets(t *testing.T) {
	for name, tt := range map[string]struct {
		err    error
		status int
	}{
		"no such":     {notFound("sentinel secret-name is unknown"), 401},
		"bad secret":  {abi.New(abi.Denied, "signature secret-name"), 401},
		"host fault":  {errors.New("open secret-name"), 500},
		"bad body":    {abi.New(abi.BadFields, "no JSON"), 400},
		"store stuck": {abi.New(abi.Unavailable, "disk full"), 503},
	} {
		s := open(t, api.Options{Hooks: hooksFunc(func(sentinels.ID, string, triggers.Request) ([]triggers.Admission, error) { return nil, tt.err })})
		s.auth = ""
		got := s.do("POST", "/v1/hooks/nightly", "{}")
		if got.status != tt.status || strings.Contains(got.body, "secret-name") {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	s := open(t, api.Options{})
	s.auth = ""
	if got := s.do("POST", "/v1/hooks/nightly", "{}"); got.status != 401 {
		t.Errorf("no webhooks: %d", got.status)
	}
}
