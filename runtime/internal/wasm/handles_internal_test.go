package wasm

import (
	"bytes"
	"encoding/json"
	"testing"
)

// TestOutlineOfKnownPlaceholder: a guest that knows the strings of outlines, as from an error, cannot have a
// value inserted where it has no handle, or more often than its limits allow.
func TestOutlineOfKnownPlaceholder(t *testing.T) {
	value := []byte(`"large"`)
	c := &call{byHandle: map[uint64][]byte{64: value}}
	text := c.handlesIn([]byte(`{"a":@s64,"b":"` + placeholder + `0"}`))
	o := text.outline()
	want := `{"a":"large","b":"` + placeholder + `0"}`
	if got := o.Insert(json.RawMessage(o.Text)); string(got) != want || len(o.values) != 0 {
		t.Errorf("%s with %d values, want %s", got, len(o.values), want)
	}
	text = c.handlesIn([]byte(`{"a":@s64}`))
	o = text.outline()
	if got := o.Insert(json.RawMessage(o.Text)); string(got) != `{"a":"large"}` || bytes.Contains(o.Text, []byte("large")) {
		t.Errorf("%s, outline %s", got, o.Text)
	}
}
