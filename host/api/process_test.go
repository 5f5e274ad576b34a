package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/api"
)

// G3: the open routes tell a word; the detail is for those with a token.
func TestHealth(t *testing.T) {
	how := api.Health{OK: true, Status: "ok", Detail: map[string]int{"free": 7}}
	s := open(t, api.Options{Version: "9", Health: func(context.Context) api.Health { return how }, Ready: func(context.Context) api.Health {
		return api.Health{Status: "starting: /secret/path"}
	}})
	s.auth = ""
	for _, tt := range []struct {
		how    api.Health
		status int
		body   string
	}{
		{how, 200, `{"status":"ok"}`},
		{api.Health{Status: "read_only", Detail: "disk"}, 503, `{"status":"read_only"}`},
		{api.Health{Status: "disk full at /x"}, 503, `{"status":"unwell"}`},
		{api.Health{OK: true}, 200, `{"status":"ok"}`},
	} {
		how = tt.how
		if got := s.do("GET", "/health", ""); got.status != tt.status || got.body != tt.body {
			t.Errorf("%+v: %d %s", tt.how, got.status, got.body)
		}
	}
	if got := s.do("GET", "/ready", ""); got.status != 503 || got.body != `{"status":"unwell"}` {
		t.Errorf("ready: %d %s", got.status, got.body)
	}
	stopping := open(t, api.Options{})
	if got := stopping.do("GET", "/ready", ""); got.status != 200 {
		t.Errorf("before it drains: %d", got.status)
	}
	if stopping.api.Drain(); stopping.do("GET", "/ready", "").body != `{"status":"stopping"}` || stopping.do("GET", "/health", "").status != 200 {
		t.Error("a draining server is ready")
	}
	how = api.Health{Status: "read_only", Detail: map[string]int{"free": 7}}
	if got := s.do("GET", "/v1/health", ""); got.status != http.StatusUnauthorized {
		t.Errorf("detail without a token: %d", got.status)
	}
	s.auth = "Bearer " + goodToken
	got := s.do("GET", "/v1/health", "")
	for _, want := range []string{`"version":"9"`, `"health":{"ok":false,"status":"read_only","detail":{"free":7}}`, `"ready":{"ok":false,"status":"starting: /secret/path"}`} {
		if !strings.Contains(got.body, want) {
			t.Errorf("detail: %s, want %s", got.body, want)
		}
	}
}

// A browser gives its token among the subprotocols; it goes no further.
func TestFeedToken(t *testing.T) {
	var protocols, auth []string
	s := open(t, api.Options{Feed: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		protocols, auth = r.Header.Values("Sec-Websocket-Protocol"), r.Header.Values("Authorization")
	})})
	s.auth = ""
	for offer, want := range map[string]int{
		"sentinel.v1, token." + goodToken: 200, "token." + goodToken + ",sentinel.v1": 200, "sentinel.v1": 401, "sentinel.v1, token.bad": 401, "sentinel.v1, " + goodToken: 401,
	} {
		if got := s.do("GET", "/ws", "", "Sec-WebSocket-Protocol: "+offer); got.status != want {
			t.Errorf("%s: %d", offer, got.status)
		}
		if want == 200 && (len(protocols) != 1 || protocols[0] != "sentinel.v1") {
			t.Errorf("%s: the feed saw %q", offer, protocols)
		}
	}
	if got := s.do("GET", "/v1/runs", "", "Sec-WebSocket-Protocol: token."+goodToken); got.status != 401 {
		t.Errorf("on another route: %d", got.status)
	}
	s.auth = "Bearer " + goodToken
	if got := s.do("GET", "/ws", "", "Sec-WebSocket-Protocol: sentinel.v1, token.x"); got.status != 200 || protocols[0] != "sentinel.v1" || len(auth) != 0 {
		t.Errorf("with a header: %d, the feed saw %q and %q", got.status, protocols, auth)
	}
	s = open(t, api.Options{})
	for _, path := range []string{"/ws", "/metrics"} {
		if got := s.do("GET", path, ""); got.status != 404 {
			t.Errorf("%s: %d", path, got.status)
		}
	}
}
