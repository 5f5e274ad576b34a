package request_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/request"
)

func TestMembers(t *testing.T) {
	got, err := request.Members([]byte(` {"a": 1, "A": null, "": {"x": [2]}} `))
	want := []request.Member{{"a", json.RawMessage("1")}, {"A", json.RawMessage("null")}, {"", json.RawMessage(`{"x": [2]}`)}}
	if err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", "null", "[]", `"x"`, "{", "{}x", "{} {}", `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, "{\"a\":\"\xff\"}", `{"a":}`, `{a:1}`, `{"a":1,}`} {
		if got, err := request.Members([]byte(text)); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestValues(t *testing.T) {
	for text, ok := range map[string]bool{"null": true, "0": true, "9": true, "-1": false, "1.5": false, `"1"`: false, "99999999999999999999": false} {
		if n, err := request.Number(json.RawMessage(text)); (err == nil) != ok {
			t.Errorf("number %s: %d, %v", text, n, err)
		}
	}
	for text, ok := range map[string]bool{"null": true, "true": true, "false": true, "1": false, `"true"`: false} {
		if f, err := request.Flag(json.RawMessage(text)); (err == nil) != ok || f != (text == "true") {
			t.Errorf("flag %s: %v, %v", text, f, err)
		}
	}
	for text, ok := range map[string]bool{"null": true, `""`: true, `"x"`: true, "1": false, "[]": false} {
		if s, err := request.Text(json.RawMessage(text)); (err == nil) != ok {
			t.Errorf("text %s: %q, %v", text, s, err)
		}
	}
	if b, err := request.Answer(map[string]string{"a": "<&>"}); err != nil || string(b) != `{"a":"<&>"}` {
		t.Errorf("%s, %v", b, err)
	}
}

// FuzzMembers holds that what is read is all there is, once.
func FuzzMembers(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":{"c":[true,null]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := request.Members(text)
		if err != nil {
			return
		}
		var b bytes.Buffer
		b.WriteByte('{')
		for i, m := range list {
			if i > 0 {
				b.WriteByte(',')
			}
			name, _ := json.Marshal(m.Name)
			b.Write(append(append(name, ':'), m.Value...))
		}
		b.WriteByte('}')
		var one, two any
		if json.Unmarshal(text, &one) != nil || json.Unmarshal(b.Bytes(), &two) != nil || cmp.Diff(one, two) != "" {
			t.Fatalf("%q was read as %q", text, b.String())
		}
	})
}
