package step

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// TestEncodeValues: odd values have the bytes that encoding/json writes.
func TestEncodeValues(t *testing.T) {
	values := map[string]json.RawMessage{
		"object":       json.RawMessage("{ \"a\" : [1 , 2.50e+07,-0] ,\t\"a\": null,\n\"<k>\": \"&\" }"),
		"text":         json.RawMessage(`"\u00e9 \"q\" \\ <b> & \/ \ud83d\ude00 \ud800  tab\t"`),
		"separators":   json.RawMessage("\"a\u2028b\u2029c\""),
		"not UTF-8":    json.RawMessage("\"a\xffb\xe2\x80\""),
		"long":         json.RawMessage(`"` + strings.Repeat("é", escapeBlock/2) + strings.Repeat("\u2028<", escapeBlock) + strings.Repeat("x", 3*escapeBlock) + `&"`),
		"number":       json.RawMessage(`123456789012345678901234567890.0000001E-400`),
		"spaced":       json.RawMessage("  true\r\n"),
		"empty":        json.RawMessage(`{}`),
		"none":         nil,
		"<name> & é":   json.RawMessage(`[ ]`),
		"":             json.RawMessage(`""`),
		"bad \xff key": json.RawMessage(`false`),
	}
	for _, of := range []map[string]json.RawMessage{values, {}, nil} {
		want, err := json.Marshal(of)
		if err != nil {
			t.Fatal(err)
		}
		got, err := EncodeValues(of)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%v\ngot  %.500s\nwant %.500s", err, got, want)
		}
	}
}

// TestEncodeLongValues: a part of a value may end anywhere within a character.
func TestEncodeLongValues(t *testing.T) {
	for shift := range 6 {
		value := json.RawMessage(`"` + strings.Repeat("x", shift) + strings.Repeat("\u2028", 2*escapeBlock) + `"`)
		want, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if appendValue(&b, value); !bytes.Equal(b.Bytes(), want) {
			t.Errorf("shifted by %d: the value is not escaped", shift)
		}
	}
}

// FuzzAppendValue: a value has the bytes that encoding/json writes.
func FuzzAppendValue(f *testing.F) {
	for _, text := range []string{`"<&>"`, `{"a":1,"a":2}`, " [1, 2 ]", "\"\u2028\xff\"", `"\u003c"`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		want, err := json.Marshal(json.RawMessage(text))
		if err != nil {
			t.Skip()
		}
		var b bytes.Buffer
		if appendValue(&b, text); !bytes.Equal(b.Bytes(), want) {
			t.Errorf("%q: got %q, want %q", text, b.Bytes(), want)
		}
	})
}
