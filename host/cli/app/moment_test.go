package app_test

import (
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
)

// TestMoments reads times of flags on a Wednesday.
func TestMoments(t *testing.T) {
	now := time.Date(2026, 7, 15, 13, 30, 0, 0, time.Local)
	day := func(n int) time.Time { return time.Date(2026, 7, n, 0, 0, 0, 0, time.Local) }
	a := &app.App{Env: app.Env{Now: func() time.Time { return now }}}
	past := map[string]time.Time{
		"2h": now.Add(-2 * time.Hour), "7d": now.Add(-7 * 24 * time.Hour), "today": day(15), "yesterday": day(14), "Monday": day(13), "wed": day(8),
		"2026-07-01": day(1), "2026-07-01T00:00:00": day(1), "soon": {}, "-2h": {},
	}
	for text, want := range past {
		if got, err := a.Past("--since", text); !got.Equal(want) || (err != nil) != want.IsZero() {
			t.Errorf("--since %s: %s, %v; want %s", text, got, err, want)
		}
	}
	future := map[string]time.Time{
		"2h": now.Add(2 * time.Hour), "tomorrow": day(16), "monday": day(20), "wednesday": day(22), "2026-07-16T09:30": day(16).Add(9*time.Hour + 30*time.Minute),
		"yesterday": {}, "today": {}, "2026-07-15": {}, "later": {},
	}
	for text, want := range future {
		got, err := a.Future("--until", text)
		if err != nil {
			got = time.Time{}
		}
		if !got.Equal(want) || (err != nil) != want.IsZero() {
			t.Errorf("--until %s: %s, %v; want %s", text, got, err, want)
		}
	}
	if d, err := app.Length("--for", "7d"); err != nil || d != 7*24*time.Hour {
		t.Errorf("--for 7d: %s, %v", d, err)
	}
	for _, text := range []string{"0s", "-1h", "monday"} {
		if _, err := app.Length("--for", text); err == nil {
			t.Errorf("--for %s: no error", text)
		}
	}
}
