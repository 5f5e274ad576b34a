package termtext_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"unicode"

	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
)

func newSeen() (*slog.Logger, *bytes.Buffer) {
	b := new(bytes.Buffer)
	return slog.New(termtext.NewHandler(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		// What arrives is looked at before the text handler quotes it.
		for _, text := range []string{a.Key, a.Value.String()} {
			if strings.ContainsFunc(text, steers) || strings.Contains(text, `\x1b`) {
				b.WriteString("RAW:" + text)
			}
		}
		return a
	}}))), b
}

func TestHandler(t *testing.T) {
	const evil = "a\x1b[2K\nlevel=INFO msg=forged\u202e\u009b \\x1b[31m"
	log, out := newSeen()
	log = log.With("with"+evil, evil).WithGroup("g" + evil)
	log.Info(evil, evil, evil, "error", errors.New(evil), "named", named(evil), "list", []string{evil}, "group", slog.GroupValue(slog.String(evil, evil)),
		"lazy", lazy(evil), "number", 7, "nothing", nil)
	text := out.String()
	if strings.Contains(text, "RAW:") || strings.Count(text, "\n") != 1 || strings.ContainsFunc(strings.TrimSuffix(text, "\n"), unicode.IsControl) {
		t.Errorf("%q", text)
	}
	if !strings.Contains(text, `number"=7`) || !strings.Contains(text, `nothing"=<nil>`) {
		t.Errorf("numbers changed: %s", text)
	}
}

// lazy is a value that is computed when it is logged.
type lazy string

func (l lazy) LogValue() slog.Value { return slog.StringValue(string(l)) }

func TestJSONWriter(t *testing.T) {
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(termtext.NewJSONWriter(&out), nil)).Info("\u202e\u009b", "a", []string{"\x7f<"})
	if text := out.String(); !strings.Contains(text, `"msg":"\u202e\u009b"`) || !strings.Contains(text, `"a":["\u007f<"]`) {
		t.Error(text)
	}
}
