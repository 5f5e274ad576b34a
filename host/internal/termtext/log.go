package termtext

import (
	"context"
	"encoding"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"strings"
)

// NewHandler returns a handler that escapes messages, keys and values as [Line]
// does before next gets them. Values that are neither strings nor numbers reach
// next as their text.
//
// It is for handlers that write for terminals. [slog.TextHandler] escapes by
// itself; for [slog.JSONHandler] use [NewJSONWriter], which changes no value.
func NewHandler(next slog.Handler) slog.Handler { return handler{next} }

type handler struct{ next slog.Handler }

// Enabled implements [slog.Handler].
func (h handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle implements [slog.Handler].
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	clean := slog.NewRecord(r.Time, r.Level, logText(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(logAttr(a))
		return true
	})
	return h.next.Handle(ctx, clean)
}

// WithAttrs implements [slog.Handler].
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.next.WithAttrs(logAttrs(attrs))}
}

// WithGroup implements [slog.Handler].
func (h handler) WithGroup(name string) slog.Handler { return handler{h.next.WithGroup(logText(name))} }

// logText is Line without the text `\x1b`: tint, having quoted a string, turns
// that text back into an escape character.
func logText(s string) string { return strings.ReplaceAll(string(Line(s)), `\x1b`, `\u001b`) }

func logAttrs(attrs []slog.Attr) []slog.Attr {
	out := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		out[i] = logAttr(a)
	}
	return out
}

func logAttr(a slog.Attr) slog.Attr {
	value := a.Value.Resolve()
	switch value.Kind() {
	case slog.KindGroup:
		value = slog.GroupValue(logAttrs(value.Group())...)
	case slog.KindString:
		value = slog.StringValue(logText(value.String()))
	case slog.KindAny:
		value = logAny(value.Any())
	}
	return slog.Attr{Key: logText(a.Key), Value: value}
}

// logAny returns numbers as they are and the text of everything else.
func logAny(v any) slog.Value {
	switch v := v.(type) {
	case nil:
		return slog.AnyValue(nil)
	case error:
		return slog.StringValue(logText(v.Error()))
	case encoding.TextMarshaler:
		if text, err := v.MarshalText(); err == nil {
			return slog.StringValue(logText(string(text)))
		}
	}
	switch reflect.ValueOf(v).Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		if _, named := v.(fmt.Stringer); !named {
			return slog.AnyValue(v)
		}
	}
	return slog.StringValue(logText(fmt.Sprintf("%+v", v)))
}

// NewJSONWriter returns a writer that passes whole JSON texts on as [JSON] spells
// them. Each Write has to hold whole texts, as those of [slog.JSONHandler] do.
func NewJSONWriter(to io.Writer) io.Writer { return jsonWriter{to} }

type jsonWriter struct{ to io.Writer }

// Write implements [io.Writer].
func (w jsonWriter) Write(text []byte) (int, error) {
	if _, err := w.to.Write(JSON(text)); err != nil {
		return 0, err
	}
	return len(text), nil
}

var (
	_ slog.Handler = handler{}
	_ io.Writer    = jsonWriter{}
)
