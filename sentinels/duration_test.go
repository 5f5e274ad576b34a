package sentinels_test

import (
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestDurations: "Durations are accepted as texts wherever milliseconds are."
func TestDurations(t *testing.T) {
	for text, want := range map[string]int64{"5m": 300_000, "1.5s": 1500, "90s": 90_000, "1h30m": 5_400_000, "250ms": 250, "2d": 172_800_000, "1d12h": 129_600_000, "0.5d": 43_200_000} {
		d := decode(t, `{"name": "n", "timeoutMs": "`+text+`", "steps": [{"type": "wait", "durationMs": "`+text+`"}]}`)
		if d.Safety.TimeoutMs != want {
			t.Errorf("%s is %d ms, want %d", text, d.Safety.TimeoutMs, want)
		}
		if encoded := string(sentinels.Encode(d)); strings.Contains(encoded, text) {
			t.Errorf("%s is stored as a text:\n%s", text, encoded)
		}
	}
	for _, text := range []string{"", "5", "m", "-5s", "+5s", "5 m", "1e3s", "0.1ms", "1us", "5M", "d", "-1d", "1d-1h", "99999999999h", "1d2d", "Infd"} {
		d, problems := sentinels.Decode([]byte(`{"name": "n", "timeoutMs": "`+text+`", "steps": []}`), options(t))
		if d != nil || len(problems) != 1 {
			t.Errorf("%q: %v, want one problem", text, problems)
		}
		d, problems = sentinels.Decode([]byte(`{"name": "n", "steps": [{"type": "wait", "durationMs": "`+text+`"}]}`), options(t))
		if d != nil || len(problems) != 1 {
			t.Errorf("%q of a step: %v, want one problem", text, problems)
		}
	}
	// A limit holds for the number, and a reference stays one.
	if _, problems := sentinels.Decode([]byte(`{"name": "n", "timeoutMs": "0s", "steps": []}`), options(t)); !strings.Contains(problems.Error(), "is 0, want at least 1") {
		t.Errorf("0s: %v", problems)
	}
	d := decode(t, `{"name": "n", "variables": {"t": 5}, "steps": [{"type": "wait", "durationMs": "$t"}]}`)
	if got := string(d.Steps[0].Fields["durationMs"]); got != `"$t"` {
		t.Errorf("a reference became %s", got)
	}
}
