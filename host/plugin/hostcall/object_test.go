package hostcall_test

import (
	"encoding/json"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/plugin/hostcall"
)

func TestValues(t *testing.T) {
	for text, ok := range map[string]bool{"null": true, "0": true, "9": true, "-1": false, "1.5": false, `"1"`: false, "99999999999999999999": false} {
		if n, err := hostcall.Number(json.RawMessage(text)); (err == nil) != ok {
			t.Errorf("number %s: %d, %v", text, n, err)
		}
	}
	for text, ok := range map[string]bool{"null": true, "true": true, "false": true, "1": false, `"true"`: false} {
		if f, err := hostcall.Flag(json.RawMessage(text)); (err == nil) != ok || f != (text == "true") {
			t.Errorf("flag %s: %v, %v", text, f, err)
		}
	}
	for text, ok := range map[string]bool{"null": true, `""`: true, `"x"`: true, "1": false, "[]": false} {
		if s, err := hostcall.Text(json.RawMessage(text)); (err == nil) != ok {
			t.Errorf("text %s: %q, %v", text, s, err)
		}
	}
	if b, err := hostcall.Answer(map[string]string{"a": "<&>"}); err != nil || string(b) != `{"a":"<&>"}` {
		t.Errorf("%s, %v", b, err)
	}
}
