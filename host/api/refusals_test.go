package api_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// TestRefusedWebhooksAreCounted: of the refused requests of a minute the first of each webhook is
// logged, and the number of the others, whatever names strangers invent.
func TestRefusedWebhooksAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var written bytes.Buffer
		out := &lockedWriter{w: &written} // a timer writes too
		log := func() string {
			out.mu.Lock()
			defer out.mu.Unlock()
			return written.String()
		}
		registry, err := command.NewRegistry()
		if err != nil {
			t.Fatal(err)
		}
		a, err := api.New(api.Options{
			Commands: registry, Hosts: []string{"localhost"}, Logger: slog.New(slog.NewTextHandler(out, nil)),
			Hooks: hooksFunc(func(sentinels.ID, string, triggers.Request) ([]triggers.Admission, error) {
				return nil, abi.New(abi.Denied, "the secret is wrong "+strings.Repeat("x", 5000))
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
		call := func(path string) {
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodPost, "http://localhost"+path, strings.NewReader("{}"))
			if a.Handler().ServeHTTP(w, r); w.Code != http.StatusUnauthorized {
				t.Fatalf("%s: %d %s", path, w.Code, w.Body)
			}
		}
		for i := range 1000 {
			call("/v1/hooks/nightly")
			call(fmt.Sprintf("/v1/hooks/name-%d", i))
		}
		first := strings.Count(log(), "\n")
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		before := log()
		lines := strings.Split(strings.TrimSpace(before), "\n")
		if first > 20 || len(lines) > first+20 || len(before) > 20<<10 {
			t.Errorf("%d lines at once, %d in all, %d bytes", first, len(lines), len(before))
		}
		if !strings.Contains(before, `sentinel=nightly trigger="" times=999`) {
			t.Errorf("no line counts those of nightly:\n%.3000s", before)
		}
		if call("/v1/hooks/nightly"); !strings.Contains(log()[len(before):], "webhook refused") {
			t.Errorf("the first of the next period: %s", log()[len(before):])
		}
		time.Sleep(2 * time.Minute)
	})
}
