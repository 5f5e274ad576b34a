package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/principal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// revocable is a token of an agent that is valid until it is revoked.
type revocable struct{ revoked atomic.Bool }

func (r *revocable) Who(token string) (principal.Principal, bool) {
	return principal.Principal{Kind: principal.Agent, Name: "ci"}, token == goodToken && !r.revoked.Load()
}

// TestRequestsOfRevokedTokens: a request under way is cancelled when its token is revoked (G7), and no
// other is.
func TestRequestsOfRevokedTokens(t *testing.T) {
	tokens, began := &revocable{}, make(chan struct{})
	s := open(t, api.Options{Tokens: tokens, Commands: commands(t, map[string]any{"sentinel/run": reply(func(ctx context.Context, _ *command.Call) (json.RawMessage, error) {
		close(began)
		<-ctx.Done()
		return nil, ctx.Err()
	})})})
	answers := make(chan answer)
	go func() { answers <- s.do("POST", "/v1/commands/sentinel/run", "{}") }()
	<-began
	tokens.revoked.Store(true)
	got := <-answers
	if got.status != http.StatusUnauthorized || got.problem.Code != abi.Denied || !strings.Contains(got.body, "revoked") || !strings.Contains(got.body, "sentinel stop") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestTokensSayWhetherTheyCount: what a request with a named token begins can ask whether the token is
// still valid, when the request has ended too.
func TestTokensSayWhetherTheyCount(t *testing.T) {
	tokens := &revocable{}
	var valid func() bool
	s := open(t, api.Options{Tokens: tokens, Commands: commands(t, map[string]any{"sentinel/run": reply(func(ctx context.Context, _ *command.Call) (json.RawMessage, error) {
		valid = principal.Validity(ctx)
		return json.RawMessage(`{}`), nil
	})})})
	if got := s.do("POST", "/v1/commands/sentinel/run", "{}"); got.status != http.StatusOK || valid == nil || !valid() {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if tokens.revoked.Store(true); valid() {
		t.Error("a revoked token counts")
	}
}
