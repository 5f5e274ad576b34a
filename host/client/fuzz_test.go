package client_test

import (
	"testing"

	"github.com/sentinel-runtime/sentinel/host/client"
)

// Whatever a server sends, a watch takes it or ends; its cursor moves only with
// what was handed on.
func FuzzMessage(f *testing.F) {
	f.Add([]byte(`{"hello":{"cursor":"e-0"}}`))
	f.Add([]byte(`{"cursor":"e-1","topic":"runs","event":{"a":1}}`))
	f.Add([]byte(`{"gap":{"lost":-1,"cursor":"e-9"}}`))
	f.Add([]byte(`{"cursor":"e-2"}`))
	f.Add([]byte(`{"hello":null,"gap":null,"event":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var handed []client.Message
		cursor, err := client.Take(text, "e-0", func(m client.Message) error {
			handed = append(handed, m)
			return nil
		})
		if len(handed) > 1 || err != nil && (len(handed) > 0 || cursor != "e-0") {
			t.Fatalf("%q: %v, cursor %q, %v", text, handed, cursor, err)
		}
		if len(handed) == 1 && handed[0].Event == nil && handed[0].Gap == nil {
			t.Fatalf("%q: neither event nor gap", text)
		}
		if len(handed) == 1 && handed[0].Cursor != "" && handed[0].Cursor != cursor {
			t.Fatalf("%q: cursor %q, message %q", text, cursor, handed[0].Cursor)
		}
	})
}
