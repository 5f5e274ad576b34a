package host

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/sentinel-runtime/sentinel/host/redact"
)

// parts is an output of which each part is there after a follow.
type parts struct {
	io.Reader
	later []string
}

func (p *parts) Close() error     { return nil }
func (p *parts) Size() int64      { return 0 }
func (p *parts) Skip(int64) error { return nil }

func (p *parts) Follow(context.Context) (bool, error) {
	if len(p.later) == 0 {
		return false, nil
	}
	p.Reader, p.later = strings.NewReader(p.later[0]), p.later[1:]
	return true, nil
}

// TestOutputWithoutSecretsInParts: a secret is found wherever reads and follows divide it.
func TestOutputWithoutSecretsInParts(t *testing.T) {
	var r redact.Redactor
	if err := r.Register("hunter2-hunter3"); err != nil {
		t.Fatal(err)
	}
	const text, want = "hunter2-hunter3 a hunter2-hunter3\nhunter2-hunt", "[redacted] a [redacted]\nhunter2-hunt"
	got, err := io.ReadAll(&redactedOutput{raw: &parts{Reader: iotest.OneByteReader(strings.NewReader(text))}, redactor: &r})
	if err != nil || string(got) != want {
		t.Errorf("byte by byte: %q, %v", got, err)
	}
	for i := range text {
		for j := i; j < len(text); j++ {
			o := &redactedOutput{raw: &parts{strings.NewReader(text[:i]), []string{text[i:j], text[j:]}}, redactor: &r, follow: true}
			var got bytes.Buffer
			for more := true; more; {
				if _, err := io.Copy(&got, o); err != nil {
					t.Fatal(err)
				}
				if more, err = o.Follow(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if got.String() != want {
				t.Fatalf("divided at %d and %d: %q", i, j, got.String())
			}
		}
	}
}
