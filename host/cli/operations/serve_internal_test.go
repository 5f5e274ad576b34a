package operations

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/logfile"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A start logs one line for all calls that were cut off and one for all runs
// that are quarantined, with their numbers; the single ones are for debugging.
func TestRecoveryIsLoggedInTwoLines(t *testing.T) {
	var rec runtime.Recovery
	for n := range 56 {
		run := sentinels.RunID(fmt.Sprintf("run-%d", n/2))
		choice := sentinels.InterruptRetry
		if n < 10 {
			choice = sentinels.InterruptAsk
		}
		rec.InDoubt = append(rec.InDoubt, runtime.Doubt{Run: run, Call: fmt.Sprintf("%d!1", n), Choice: choice})
		rec.Quarantined = append(rec.Quarantined, runtime.Quarantine{Run: run, Step: "0", Crashes: 3})
	}
	for level, lines := range map[slog.Level]int{slog.LevelInfo: 2, slog.LevelDebug: 2 + 2*56} {
		var out bytes.Buffer
		recovered(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level})), rec)
		if got := strings.Count(out.String(), "\n"); got != lines {
			t.Errorf("level %s: %d lines, want %d:\n%s", level, got, lines, out.String())
		}
		for _, part := range []string{"calls=56 runs=28 ask=10", "sentinel list --status waiting", "runs=56", "sentinel list --status quarantined"} {
			if !strings.Contains(out.String(), part) {
				t.Errorf("level %s: %q is missing", level, part)
			}
		}
	}
	var out bytes.Buffer
	recovered(slog.New(slog.NewTextHandler(&out, nil)), runtime.Recovery{Resumed: 3})
	if out.Len() > 0 {
		t.Errorf("nothing to decide: %s", out.String())
	}
}

// The journal has a unit of the system's manager or of a user's own, by the control groups of the process.
func TestUnitOf(t *testing.T) {
	for groups, want := range map[string]logfile.Place{
		"0::/system.slice/sentinel.service\n":                                               {Unit: "sentinel.service"},
		"12:cpu:/\n1:name=systemd:/system.slice/ci.service\n":                               {Unit: "ci.service"},
		"0::/user.slice/user-1000.slice/user@1000.service/app.slice/sentinel.service/sub\n": {Unit: "sentinel.service", User: true},
		"0::/\n": {},
	} {
		if got := unitOf(groups); got != want {
			t.Errorf("%q: %+v, want %+v", groups, got, want)
		}
	}
}
