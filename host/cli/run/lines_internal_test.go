package run

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestErrorsAreShownOnce: the error of a step is shown once the run goes on, and not at all if the run
// ends with it, which shows it. That of each call of a model is shown.
func TestErrorsAreShownOnce(t *testing.T) {
	no := &abi.Error{Message: "no\nnot at all", Hint: "try\nagain"}
	end := func(path string, e *abi.Error) runtime.Progress {
		return runtime.Progress{Event: runtime.OnStepEnd, Run: "r", Address: path, Path: path, Type: "shell", Error: e}
	}
	call := runtime.Progress{Event: runtime.OnCallEnd, Run: "r", ByModel: true, Label: "code/edit", Error: no}
	over := runtime.Progress{Event: runtime.OnRunEnd, Run: "r", Status: sentinels.StatusFailed, Error: no}
	tests := map[string]struct {
		events []runtime.Progress
		want   []string
	}{
		"the run ends with it": {[]runtime.Progress{end("1.then.0", no), end("1", no), over}, []string{"1.then.0 shell failed", "1 shell failed"}},
		"the run goes on":      {[]runtime.Progress{end("0", no), {Event: runtime.OnStepStart, Run: "r"}, end("1", nil)}, []string{"0 shell failed", "no", "not at all", "hint: try", "again", "1 shell ok"}},
		"another error ends the run": {[]runtime.Progress{end("0", no), end("1", &abi.Error{Message: "more"}), {Event: runtime.OnRunEnd, Run: "r", Error: &abi.Error{Message: "limit"}}},
			[]string{"0 shell failed", "no", "not at all", "hint: try", "again", "1 shell failed", "more"}},
		"a retry": {[]runtime.Progress{{Event: runtime.OnRetry, Run: "r", Path: "0", Address: "0", Type: "shell", Attempt: 1, Duration: time.Second, Error: no}},
			[]string{"0 shell attempt 1 failed, next in 1s", "no", "not at all", "hint: try", "again"}},
		"calls of a model": {[]runtime.Progress{call, call}, []string{"model: code/edit", "no", "not at all", "hint: try", "again", "model: code/edit", "no", "not at all", "hint: try", "again"}},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			l := lines{app: verbs{&app.App{}}, root: "r", head: true}
			var got []string
			for _, p := range c.events {
				for _, line := range l.of(p) {
					words := strings.Fields(strings.TrimSuffix(string(line), "  0.0ms"))
					got = append(got, strings.Join(words, " "))
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
