package httpproblem_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/httpproblem"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"":                              0,
		"120":                           2 * time.Minute,
		"-5":                            0,
		"99999999999":                   time.Hour,
		"soon":                          0,
		"Fri, 01 May 2026 12:00:30 GMT": 30 * time.Second,
		"Fri, 01 May 2026 11:00:00 GMT": 0,
		"Sat, 02 May 2026 12:00:00 GMT": time.Hour,
	} {
		h := http.Header{}
		h.Set("Retry-After", value)
		if got := httpproblem.RetryAfter(h, now); got != want {
			t.Errorf("Retry-After %q: %s, want %s", value, got, want)
		}
	}
}
