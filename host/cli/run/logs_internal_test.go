package run

import "testing"

// A line of a log is an event with a name, or none.
func FuzzReadEvent(f *testing.F) {
	f.Add([]byte(`{"event":"step.end","run":"r","durationMs":1.5,"error":{"code":"internal","message":"m"}}`))
	f.Add([]byte(`{"event":""}`))
	f.Add([]byte(`{"event":"x","time":"yesterday"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if e, ok := readEvent(line); ok && e.Event == "" {
			t.Fatalf("%q is an event without a name", line)
		}
	})
}
