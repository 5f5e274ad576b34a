package redact_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/redact"
)

type named struct{ Name string }

type lazily string

func (l lazily) LogValue() slog.Value { return slog.StringValue(string(l)) }

func TestHandler(t *testing.T) {
	const secret = "sk-a-long-secret"
	r := new(redact.Redactor)
	for _, next := range []func(*bytes.Buffer) slog.Handler{
		func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
	} {
		var out bytes.Buffer
		log := slog.New(redact.NewHandler(next(&out), r))
		log.Info("before " + secret + " is known")
		if strings.Contains(out.String(), redact.Mark) {
			t.Fatalf("redacted what was not registered: %s", out.String())
		}
		out.Reset()
		if err := r.Register(secret); err != nil {
			t.Fatal(err)
		}
		log = log.With("with", "a "+secret).WithGroup("group").With("error", errors.New("token "+secret))
		log.Info("message "+secret, "text", secret, "wrapped", fmt.Errorf("open: %w", errors.New(secret)), "bytes", []byte(secret),
			"struct", named{secret}, "lazy", lazily(secret), "number", 7, slog.Group("inner", "key", secret))
		line := out.String()
		if strings.Contains(line, secret) {
			t.Errorf("the line has the secret: %s", line)
		}
		for _, kept := range []string{"message " + redact.Mark, "7", "a " + redact.Mark, "token " + redact.Mark, "open: " + redact.Mark} {
			if !strings.Contains(line, kept) {
				t.Errorf("the line lacks %q: %s", kept, line)
			}
		}
		r = new(redact.Redactor)
	}
}
