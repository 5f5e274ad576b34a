package control_test

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/control"
)

// A server process serves its whole API, and still GET /v1/owner.
func TestHandlerServesOtherPaths(t *testing.T) {
	state := t.TempDir()
	ended := make(chan struct{})
	waiting := make(chan struct{})
	s, err := control.Listen(control.ServerOptions{State: state, Handler: withOwner(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			close(waiting)
			<-r.Context().Done()
			close(ended)
			return
		}
		io.WriteString(w, `"`+r.Method+" "+r.URL.Path+`"`)
	}))})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if info, err := control.Owner(t.Context(), state); err != nil || info.Version != "1.2.3" {
		t.Errorf("%+v, %v", info, err)
	}
	hc := &http.Client{Transport: control.Transport(state)}
	defer hc.CloseIdleConnections()
	res, err := hc.Get("http://anything/v1/runs")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, _ := io.ReadAll(res.Body); string(body) != `"GET /v1/runs"` {
		t.Errorf("body = %s", body)
	}
	go func() {
		req, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://x/wait", nil)
		if res, err := hc.Do(req); err == nil {
			res.Body.Close()
		}
	}()
	<-waiting
	s.Close()
	select {
	case <-ended:
	default:
		t.Error("Close returned before the handler had ended")
	}
}
