package triggers_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

func trigger(options string) sentinels.Trigger {
	return sentinels.Trigger{Type: "test", Options: json.RawMessage(options)}
}

func TestReadOptions(t *testing.T) {
	for _, tt := range []struct{ options, want string }{
		{`{"own": 3, "filter": "true", "debounceMs": 5}`, ""},
		{``, ""},
		{`{"owm": 3}`, `unknown option "owm", did you mean "own"?`},
		{`{"zzzz": 3}`, `unknown option "zzzz": want one of `},
		{`{"own": "x"}`, `option "own" is a string`},
		{`{"own": 3`, `options:`},
	} {
		var into struct {
			Own int `json:"own,omitempty"`
		}
		err := triggers.ReadOptions(trigger(tt.options), &into)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.options, err, tt.want)
		}
	}
}

func TestReadCommon(t *testing.T) {
	c, err := triggers.ReadCommon(trigger(`{"debounceMs": 200, "allowConcurrent": true, "other": 1}`))
	if err != nil || c.AllowConcurrent == nil || !*c.AllowConcurrent {
		t.Fatalf("%+v, %v", c, err)
	}
	if quiet, longest := c.Debounce(); quiet != 200*time.Millisecond || longest != 2*time.Second {
		t.Errorf("debounce %v, at most %v", quiet, longest)
	}
	for options, want := range map[string]string{
		`{"debounceMs": -1}`:                    "invalid debounceMs -1: want 0 to",
		`{"debounceMs": 100000000000}`:          "invalid debounceMs 100000000000: want 0 to",
		`{"debounceMs": 1000, "maxWaitMs": 10}`: "maxWaitMs 10 is less than debounceMs 1000",
		`{"maxRuns": 0}`:                        `option "maxRuns" is 0, want at least 1`,
		`{"until": "tomorrow"}`:                 `option "until" is "tomorrow", want a date-time`,
		`{"filter": 1}`:                         `option "filter" is a number, want a string`,
		`{"allowConcurrent": "yes"}`:            `option "allowConcurrent" is a string, want a boolean`,
	} {
		if _, err := triggers.ReadCommon(trigger(options)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", options, err, want)
		}
	}
}

func FuzzReadOptions(f *testing.F) {
	f.Add(`{"own": 3, "filter": "true"}`)
	f.Add(`[1]`)
	f.Fuzz(func(t *testing.T, options string) {
		var into struct {
			Own int `json:"own"`
		}
		_, _ = triggers.ReadCommon(trigger(options)) // both must return
		_ = triggers.ReadOptions(trigger(options), &into)
	})
}
