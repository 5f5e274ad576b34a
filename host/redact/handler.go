package redact

import (
	"context"
	"encoding"
	"fmt"
	"log/slog"
)

// NewHandler returns a handler that removes the secrets of r from the messages and
// attributes of log lines, and passes them on to next. Secrets that are registered
// later count from then on.
func NewHandler(next slog.Handler, r *Redactor) slog.Handler { return &handler{next, r} }

type handler struct {
	next slog.Handler
	r    *Redactor
}

// Enabled implements [slog.Handler].
func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle implements [slog.Handler].
func (h *handler) Handle(ctx context.Context, rec slog.Record) error {
	if !h.r.Active() {
		return h.next.Handle(ctx, rec)
	}
	clean := slog.NewRecord(rec.Time, rec.Level, h.r.String(rec.Message), rec.PC)
	rec.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(h.attr(a))
		return true
	})
	return h.next.Handle(ctx, clean)
}

// WithAttrs implements [slog.Handler].
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = h.attr(a)
	}
	return &handler{h.next.WithAttrs(clean), h.r}
}

// WithGroup implements [slog.Handler].
func (h *handler) WithGroup(name string) slog.Handler { return &handler{h.next.WithGroup(name), h.r} }

// attr returns an attribute without secrets. A value that is not text is kept unless its
// text has a secret.
func (h *handler) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		return slog.String(a.Key, h.r.String(v.String()))
	case slog.KindGroup:
		group := v.Group()
		clean := make([]any, len(group))
		for i, inner := range group {
			clean[i] = h.attr(inner)
		}
		return slog.Group(a.Key, clean...)
	case slog.KindAny:
		text := textOf(v.Any())
		if clean := h.r.String(text); clean != text {
			return slog.String(a.Key, clean)
		}
	}
	return slog.Attr{Key: a.Key, Value: v}
}

// textOf returns a value as handlers write it.
func textOf(v any) string {
	switch v := v.(type) {
	case error:
		return v.Error()
	case []byte:
		return string(v)
	case encoding.TextMarshaler:
		if text, err := v.MarshalText(); err == nil {
			return string(text)
		}
	}
	return fmt.Sprintf("%+v", v)
}
