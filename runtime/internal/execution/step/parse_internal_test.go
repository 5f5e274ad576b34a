package step

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestCutOutput: what says that an output is not whole is beside its large values, which are not read.
func TestCutOutput(t *testing.T) {
	unread := "not JSON: " + strings.Repeat(`\u0074`, 1<<10)
	for _, c := range []struct {
		out, outline string
		want         abi.Code
		permanent    bool
	}{
		{`{"text":"a","truncated":true}`, "", abi.Limit, true},
		{`{"text":"a","\u0074runcated":true}`, "", abi.Limit, true},
		{`{"text":"a","stopReason":"length"}`, "", abi.Limit, false},
		{`{"text":"a","stopReason":"stop","truncated":false}`, "", "", false},
		{`{"text":{"truncated":true}}`, "", "", false},
		{`"truncated"`, "", "", false},
		{``, "", "", false},
		{`{"text":` + unread + `,"truncated":true}`, `{"text":"value:0","truncated":true}`, abi.Limit, true},
		{`{"text":` + unread + `}`, `{"text":"value:0"}`, "", false},
		{`{"text":"a","truncated":true}`, `"value:0"`, abi.Limit, true}, // the output as a whole was passed on
	} {
		var got abi.Error
		if e := cutOutput(json.RawMessage(c.out), json.RawMessage(c.outline)); e != nil {
			got = *e
		}
		if got.Code != c.want || got.Permanent != c.permanent {
			t.Errorf("%.60s %s: got %v", c.out, c.outline, got)
		}
	}
}
