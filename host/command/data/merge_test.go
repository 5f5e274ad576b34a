package data

import (
	"encoding/json"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/command"
)

func TestMerge(t *testing.T) {
	// The rows are cases of RFC 7396, appendix A.
	tests := []struct{ text, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`{"e":null}`, `{"a":1}`, `{"a":1,"e":null}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	}
	for _, tt := range tests {
		patch, _ := object(json.RawMessage(tt.patch))
		got, err := merge(json.RawMessage(tt.text), patch)
		if err != nil {
			t.Errorf("merge(%s, %s): %v", tt.text, tt.patch, err)
			continue
		}
		text, _ := json.Marshal(got)
		if !command.SameJSON(text, json.RawMessage(tt.want)) {
			t.Errorf("merge(%s, %s) = %s, want %s", tt.text, tt.patch, text, tt.want)
		}
	}
	if _, err := merge(json.RawMessage(`[1]`), nil); err == nil {
		t.Error("merged into a list")
	}
}

// Merging the same patch twice must change nothing more.
func FuzzMerge(f *testing.F) {
	f.Add(`{"a":{"b":1}}`, `{"a":{"b":null,"c":[{}]}}`)
	f.Add(`{"a":1}`, `{"a":{"b":{"c":null}}}`)
	f.Fuzz(func(t *testing.T, text, change string) {
		patch, ok := object(json.RawMessage(change))
		if !ok {
			return
		}
		once, err := merge(json.RawMessage(text), patch)
		if err != nil {
			return
		}
		first, err := json.Marshal(once)
		if err != nil {
			t.Fatal(err)
		}
		twice, err := merge(first, patch)
		if err != nil {
			t.Fatalf("second merge: %v", err)
		}
		second, _ := json.Marshal(twice)
		if !command.SameJSON(first, second) {
			t.Errorf("merge(%q, %q) = %s, then %s", text, change, first, second)
		}
	})
}
