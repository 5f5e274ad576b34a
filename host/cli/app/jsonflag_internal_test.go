package app

import "testing"

func TestValueOf(t *testing.T) {
	for _, tt := range []struct{ text, want, json string }{
		{"go build", "string", `"go build"`}, {"12", "string", `"12"`}, {`"12"`, "string", `"\"12\""`},
		{"12", "integer", `12`}, {"many", "integer", `"many"`}, {" [1] ", "", `[1]`}, {"plain", "", `"plain"`}, {"", "", `""`}, {"null", "", `null`},
	} {
		if got, err := ValueOf(tt.text, tt.want); string(got) != tt.json || err != nil {
			t.Errorf("ValueOf(%q, %q) = %s, %v, want %s", tt.text, tt.want, got, err, tt.json)
		}
	}
	for _, text := range []string{`{"a":1,"a":2}`, "1e999", `"\ud800"`} {
		if got, err := ValueOf(text, ""); err == nil {
			t.Errorf("ValueOf(%q) = %s", text, got)
		}
	}
}
