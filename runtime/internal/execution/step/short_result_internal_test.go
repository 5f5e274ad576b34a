package step

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestShortResult checks that a report has a small result as it is, the short fields of a
// large one, and nothing of one that has none.
func TestShortResult(t *testing.T) {
	long := `"` + strings.Repeat("x", 5<<10) + `"`
	for result, want := range map[string]string{
		`{"added":1}`: `{"added":1}`,
		`{"exitCode":1,"output":` + long + `,"success":false}`: `{"exitCode":1,"success":false}`,
		`{"output":` + long + `}`:                              ``,
		long:                                                   ``,
		`[` + long + `]`:                                       ``,
		``:                                                     ``,
	} {
		if got := string(shortResult(json.RawMessage(result))); got != want {
			t.Errorf("%.40s: %s", result, got)
		}
	}
}
