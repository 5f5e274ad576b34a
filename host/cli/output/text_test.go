package output_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
)

func TestDuration(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": -time.Second, "0.0ms": 0, "0.4ms": 400 * time.Microsecond, "10ms": 10 * time.Millisecond, "999ms": 999 * time.Millisecond,
		"1.0s": time.Second, "59.9s": 59900 * time.Millisecond, "1m00s": time.Minute, "3m05s": 185 * time.Second, "2h07m": 127 * time.Minute,
	} {
		if got := string(output.Duration(d)); got != want {
			t.Errorf("Duration(%v) = %q, want %q", d, got, want)
		}
	}
}

// TestDelay: a delay is shown as it is written in a definition.
func TestDelay(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"1s": time.Second, "1.5s": 1500 * time.Millisecond, "250ms": 250 * time.Millisecond, "10s": 10 * time.Second, "2m": 2 * time.Minute,
		"1m30s": 90 * time.Second, "1h": time.Hour, "1h10m": 70 * time.Minute, "20m": 20 * time.Minute,
	} {
		if got := string(output.Delay(d)); got != want {
			t.Errorf("Delay(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := string(output.Grouped(n)); got != want {
			t.Errorf("Grouped(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestClip(t *testing.T) {
	for _, tt := range []struct {
		in   string
		n    int
		want string
	}{
		{"short", 5, "short"}, {"longer", 5, "long…"}, {"a\n b\tc", 9, "a b c"}, {"übung", 3, "üb…"}, {"x\x1b[2J", 9, `x\x1b[2J`}, {"x\u202ey", 9, `x\u202ey`}, {"\x1b\x1b\x1b", 9, `\x1b\x1b\x1b`[:8] + "…"},
	} {
		if got := string(output.Clip(tt.in, tt.n)); got != tt.want {
			t.Errorf("Clip(%q, %d) = %q, want %q", tt.in, tt.n, got, tt.want)
		}
	}
}

func TestQuoted(t *testing.T) {
	for in, want := range map[string]string{"": "''", "a-b_c/d.e": "a-b_c/d.e", "0!1": "'0!1'", "it's": `'it'\''s'`, "1#0": "'1#0'"} {
		if got := output.Quote(in); got != want {
			t.Errorf("Quoted(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	var b strings.Builder
	if err := output.Table(output.Printer{Writer: &b}, []output.Row{{"A", "LONG HEAD"}, {"\x1b[32mgreen\x1b[0m", "x"}, {"y", ""}}); err != nil {
		t.Fatal(err)
	}
	want := "A      LONG HEAD\n\x1b[32mgreen\x1b[0m  x\ny\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

// TestTimes: each time names its zone, or its offset where it has no name, and a planned
// time has its day unless that is today in its zone.
func TestTimes(t *testing.T) {
	at := time.Date(2026, 11, 24, 8, 5, 0, 0, time.UTC)
	offset := time.FixedZone("", 3600) // as JSON has it
	named := time.FixedZone("CET", 3600)
	now := time.Date(2026, 11, 23, 23, 30, 0, 0, time.UTC) // the 24th at +01:00
	for _, tt := range []struct{ got, want termtext.Text }{
		{output.Time(at), "2026-11-24 08:05:00 UTC"},
		{output.Time(at.In(offset)), "2026-11-24 09:05:00 +01:00"},
		{output.Time(at.In(named)), "2026-11-24 09:05:00 CET"},
		{output.Time(at.In(time.FixedZone("-03", -3*3600))), "2026-11-24 05:05:00 -03:00"},
		{output.Soon(now, at), "2026-11-24 08:05 UTC"},
		{output.Soon(now, at.In(offset)), "09:05:00 +01:00"},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}
