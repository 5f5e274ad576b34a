package host

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/plugin/egress"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestSenders: while a plugin's request is answered, its run is known by the address that it
// comes from, and not after that.
func TestSenders(t *testing.T) {
	var s senders
	var remote string
	var found sentinels.RunID
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		remote, found = r.RemoteAddr, s.at(r.RemoteAddr)
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
	if run := s.at(remote); run != "" || len(s.runs) != 0 {
		t.Errorf("after the requests: %q, %d addresses", run, len(s.runs))
	}
}
