package api_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// G6: bodies are bounded, whether their length is declared or not.
func TestBodyLimits(t *testing.T) {
	reg := commands(t, map[string]any{"sentinel/create": `{"sentinelId":"a"}`, "code/write": `{}`, "sentinel/start": `{"run":"r"}`})
	s := open(t, api.Options{Commands: reg})
	const mb = 1 << 20
	for _, tt := range []struct {
		path  string
		size  int
		whole bool
	}{
		{"/v1/sentinels", mb, true}, {"/v1/sentinels", mb + 1, false},
		{"/v1/commands/code/write", 3 * mb, true}, {"/v1/commands/code/write", 4*mb + 1, false},
		{"/v1/sentinels/a/runs", 2 * mb, true},
	} {
		// No single string is beyond its own limit.
		body := `{"a":[` + strings.Repeat(`"`+strings.Repeat("x", 100_000)+`",`, tt.size/100_003-1)
		body += `"` + strings.Repeat("x", tt.size-len(body)-4) + `"]}`
		for _, told := range []bool{true, false} {
			var in io.Reader = strings.NewReader(body)
			if !told {
				in = io.MultiReader(in) // of a type without a length
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+tt.path, in)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", s.auth)
			req.Header.Set("Content-Type", "application/json")
			got := s.send(req)
			if tt.whole != (got.status/100 == 2) || !tt.whole && got.problem.Code != abi.Limit {
				t.Errorf("%s with %d bytes, told %v: %d %.200s", tt.path, tt.size, told, got.status, got.body)
			}
		}
	}
}

// Headers beyond their bound do not reach the guard: they are read before requests take turns.
func TestHeaderLimit(t *testing.T) {
	s := listen(t, api.Options{}, api.ListenOptions{})
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// The server may hang up while this is written; its answer counts.
	_, _ = io.WriteString(c, "GET /health HTTP/1.1\r\nHost: "+s.Addr().String()+"\r\nX: "+strings.Repeat("x", 24<<10)+"\r\n\r\n")
	got := make([]byte, 12)
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "HTTP/1.1 431" {
		t.Errorf("%q, %v", got, err)
	}
}

// A caller who announces a body and sends none is disconnected, refused or not.
func TestBodyThatNeverComes(t *testing.T) {
	a, err := api.New(api.Options{Commands: commands(t, nil), Tokens: oneToken(goodToken)})
	if err != nil {
		t.Fatal(err)
	}
	a.SetReadTime(20 * time.Millisecond)
	s, err := a.Listen(t.Context(), api.ListenOptions{Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- s.Run(context.Background()) }()
	for _, auth := range []string{"Bearer wrong", "Bearer " + goodToken} {
		c, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "POST /v1/commands/code/read HTTP/1.1\r\nHost: "+s.Addr().String()+
			"\r\nAuthorization: "+auth+"\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"); err != nil {
			t.Fatal(err)
		}
		// It returns only when the server hangs up.
		text, err := io.ReadAll(c)
		if err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 4") {
			t.Errorf("%q, %v", text, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ran; err != nil {
		t.Error(err)
	}
}

// A command that takes longer than its body may is not cancelled for it.
func TestSlowCommand(t *testing.T) {
	reg := commands(t, map[string]any{"code/slow": reply(func(ctx context.Context, _ *command.Call) (json.RawMessage, error) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
			return json.RawMessage(`"done"`), nil
		}
	})})
	s := open(t, api.Options{Commands: reg})
	s.api.SetReadTime(20 * time.Millisecond)
	if got := s.do("POST", "/v1/commands/code/slow", "{}"); got.body != `"done"` {
		t.Errorf("%d %s", got.status, got.body)
	}
}
