package cron_test

import (
	"testing"

	"github.com/sentinel-runtime/sentinel/triggers/cron"
)

func TestCheck(t *testing.T) {
	good := []string{
		"* * * * *", "*/5 * * * *", "0 9 * * mon-fri", "30 0 9 * * *", "@hourly", "@daily", "@every 5m", "@every 1s", "every 5m",
		"CRON_TZ=Europe/Berlin 0 9 * * *", "TZ=UTC 0 9 * * *", "0 0 29 2 *",
	}
	for _, e := range good {
		if err := cron.Check(e); err != nil {
			t.Errorf("Check(%q) = %v, want nil", e, err)
		}
	}
	bad := []string{
		"", " ", "TZ=0", "TZ=", "CRON_TZ=UTC", "CRON_TZ=Nowhere/Land 0 9 * * *", "@every 0s", "@every 10ms", "@every -5m",
		"0 9 * * 8", "60 * * * *", "* * * *", "* * * * * * *", "0 0 31 2 *", "@sometimes", "hello", "every", "every day",
	}
	for _, e := range bad {
		if err := cron.Check(e); err == nil {
			t.Errorf("Check(%q) = nil, want an error", e)
		}
	}
}

func FuzzCheck(f *testing.F) {
	for _, s := range []string{"* * * * *", "TZ=0", "CRON_TZ=UTC", "@every 0s", "0 0 31 2 *"} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, s string) { _ = cron.Check(s) }) // it must return for any input
}
