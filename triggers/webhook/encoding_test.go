package webhook_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/hex"
	"io"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// compress returns a text in a content coding.
func compress(t *testing.T, coding, text string) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "zlib":
		w = zlib.NewWriter(&b)
	case "flate":
		f, err := flate.NewWriter(&b, 9)
		if err != nil {
			t.Fatal(err)
		}
		w = f
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestT8Encodings covers clause T8.5: bodies are decompressed within the limit of a body,
// and the signature is over the bytes as they were sent.
func TestT8Encodings(t *testing.T) {
	const text = `{"ref":"refs/heads/main"}`
	for _, c := range []struct{ coding, sent string }{
		{"gzip", compress(t, "gzip", text)},
		{"X-GZip", compress(t, "gzip", text)},
		{"deflate", compress(t, "zlib", text)},
		{"deflate", compress(t, "flate", text)},
		{"identity", text},
		{"deflate, gzip", compress(t, "gzip", compress(t, "zlib", text))},
	} {
		r := post(c.sent, "Content-Encoding: "+c.coding, "Content-Type: application/json")
		fires, err := arm(t, open, "").Receive(r)
		if err != nil || string(fires[0].Event.Data) != text {
			t.Errorf("%s: %v, %v", c.coding, fires, err)
		}
	}
	bomb := compress(t, "gzip", strings.Repeat(" ", triggers.MaxBody+1))
	for name, c := range map[string]struct {
		sent, coding string
		code         abi.Code
		want         string
	}{
		"bomb":           {bomb, "gzip", abi.Limit, "more than 1048576 bytes"},
		"bomb in a bomb": {compress(t, "gzip", bomb), "gzip, gzip", abi.Limit, "more than 1048576 bytes"},
		"not gzip":       {"{}", "gzip", abi.BadFields, "not gzip"},
		"cut":            {compress(t, "gzip", text)[:20], "gzip", abi.BadFields, "not gzip"},
		"more behind":    {compress(t, "zlib", text) + "x", "deflate", abi.BadFields, "not deflate"},
		"unknown":        {"{}", "br", abi.BadFields, "want gzip, deflate or none"},
		"many":           {"{}", "gzip,gzip,gzip", abi.BadFields, "at most 2"},
	} {
		_, err := arm(t, open, "").Receive(post(c.sent, "Content-Encoding: "+c.coding))
		if abi.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Without a right signature nothing is decompressed.
	sent := compress(t, "gzip", text)
	signed := `{"secretEnv":"HOOK_SECRET"}`
	if _, err := arm(t, signed, "secret").Receive(post(bomb, "Content-Encoding: gzip", "X-Hub-Signature-256: 00")); abi.CodeOf(err) != abi.Denied {
		t.Error(err)
	}
	if fires, err := arm(t, signed, "secret").Receive(post(sent, "Content-Encoding: gzip", "X-Hub-Signature-256: "+hex.EncodeToString(mac("secret", sent)))); err != nil || string(fires[0].Event.Data) != text {
		t.Errorf("%v, %v", fires, err)
	}
}

// TestT8Payload covers clause T8.5: the form of GitHub's default content type is opened.
func TestT8Payload(t *testing.T) {
	form := "Content-Type: application/x-www-form-urlencoded"
	for sent, want := range map[string]string{
		`payload=%7B%22ref%22%3A%22refs%2Fheads%2Fmain%22%7D`: `{"ref":"refs/heads/main"}`,
		`payload=%5B1%2C+2%5D`:                                `[1,2]`,
		`payload=5`:                                           `{"payload":"5"}`,
		`payload=%7Bnot`:                                      `{"payload":"{not"}`,
		`payload=%7B%7D&x=1`:                                  `{"payload":"{}","x":"1"}`,
		`payload=%7B%7D&payload=%7B%7D`:                       `{"payload":["{}","{}"]}`,
		`a=1&a=2&b=x`:                                         `{"a":["1","2"],"b":"x"}`,
	} {
		fires, err := arm(t, open, "").Receive(post(sent, form))
		if err != nil || string(fires[0].Event.Data) != want {
			t.Errorf("%s: %v, %v", sent, fires, err)
		}
	}
	if _, err := arm(t, open, "").Receive(post(`payload=%7B%22a%22%3A1%2C%22a%22%3A2%7D`, form)); abi.CodeOf(err) != abi.BadFields {
		t.Error(err)
	}
}
