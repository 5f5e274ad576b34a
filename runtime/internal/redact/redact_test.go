package redact

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

var stars Redactor = func(v []byte) []byte { return bytes.ReplaceAll(v, []byte("secret"), []byte("***")) }

func TestText(t *testing.T) {
	for _, c := range []struct {
		name string
		r    Redactor
		text string
		want string
	}{
		{"none", nil, "a secret", "a secret"},
		{"secret", stars, "a \"secret\"", "a \"***\""},
		{"empty", stars, "", ""},
		{"spoiled", func([]byte) []byte { return []byte("no JSON") }, "a secret", ""},
	} {
		if got := c.r.Text(c.text); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestError(t *testing.T) {
	clean := &abi.Error{Code: abi.Internal, Message: "plain", Hint: "hint"}
	if got := stars.Error(clean); got != clean {
		t.Errorf("an error without secrets was copied: %v", got)
	}
	e := &abi.Error{Code: abi.Denied, Message: "key secret", Hint: "use secret", Field: "f"}
	got := stars.Error(e)
	if got.Message != "key ***" || got.Hint != "use ***" || got.Code != abi.Denied || got.Field != "f" {
		t.Errorf("got %+v", got)
	}
	if e.Message != "key secret" {
		t.Error("the original was changed")
	}
	if stars.Error(nil) != nil {
		t.Error("nil became an error")
	}
}

func TestValues(t *testing.T) {
	got := stars.Values(map[string]json.RawMessage{"a": json.RawMessage(`{ "k": "secret" }`), "b": json.RawMessage("1")})
	if string(got["a"]) != `{"k":"***"}` || string(got["b"]) != "1" {
		t.Errorf("got %s and %s", got["a"], got["b"])
	}
}
