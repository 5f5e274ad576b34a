package host

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/plugin/egress"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestSenders: while a plugin's request is answered, its run is known by the address that it
// comes from, and not after that.
func TestSenders(t *testing.T) {
	var s senders
	var remote string
	found := sentinels.RunID("none")
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if remote = r.RemoteAddr; s.at(remote) != nil {
			found = s.at(remote).run
		}
	}))
	defer server.Close()
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := egress.New(egress.Options{Connected: s.connected})
	for _, run := range []sentinels.RunID{"r1", ""} {
		_, err = client.Do(withRun(t.Context(), run), egress.Call{
			Hosts: []string{at.Host}, Private: true, Request: json.RawMessage(fmt.Sprintf(`{"url":%q}`, server.URL)),
		})
		if err != nil || found != run {
			t.Errorf("run %q, want %q: %v", found, run, err)
		}
	}
	left := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.sent)
	}
	for left() > 0 && t.Context().Err() == nil { // the client closes a connection when the answer has been read
		time.Sleep(time.Millisecond)
	}
	if s.at(remote) != nil {
		t.Error("the address is known after the requests")
	}
}

// TestSenderIsKnownUntilItIsClosed: the address of a connection is free only once it is closed, and
// belongs to another one at once.
func TestSenderIsKnownUntilItIsClosed(t *testing.T) {
	var s senders
	ctx := withRun(t.Context(), "r1")
	c := &closing{}
	address := c.LocalAddr().String()
	first := s.connected(ctx, c)
	c.during = func() {
		if s.at(address) == nil {
			t.Error("the connection is forgotten before it is closed")
		}
		s.connected(withRun(t.Context(), "r2"), &closing{})
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if now := s.at(address); now == nil || now.run != "r2" {
		t.Errorf("the next connection from the address is %+v", now)
	}
}

// closing is a connection that calls a function while it is closed.
type closing struct {
	net.Conn
	during func()
}

func (c *closing) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7} }

func (c *closing) Close() error {
	c.during()
	return nil
}
