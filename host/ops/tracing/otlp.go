package tracing

import (
	"encoding/hex"
	"math"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// The types here are the JSON form of OTLP 1.x: ids in hexadecimal, 64-bit
// numbers as strings, enumerations as numbers.
type (
	otlpRequest struct {
		ResourceSpans []otlpResourceSpans `json:"resourceSpans"`
	}
	otlpResourceSpans struct {
		Resource struct {
			Attributes []otlpAttribute `json:"attributes"`
		} `json:"resource"`
		ScopeSpans []otlpScopeSpans `json:"scopeSpans"`
	}
	otlpScopeSpans struct {
		Scope struct {
			Name    string `json:"name"`
			Version string `json:"version,omitempty"`
		} `json:"scope"`
		Spans []otlpSpan `json:"spans"`
	}
	otlpSpan struct {
		TraceID           string          `json:"traceId"`
		SpanID            string          `json:"spanId"`
		ParentSpanID      string          `json:"parentSpanId,omitempty"`
		Flags             uint32          `json:"flags"`
		Name              string          `json:"name"`
		Kind              int             `json:"kind"`
		Start             string          `json:"startTimeUnixNano"`
		End               string          `json:"endTimeUnixNano"`
		Attributes        []otlpAttribute `json:"attributes,omitempty"`
		DroppedAttributes int             `json:"droppedAttributesCount,omitempty"`
		Events            []otlpEvent     `json:"events,omitempty"`
		DroppedEvents     int             `json:"droppedEventsCount,omitempty"`
		Status            *otlpStatus     `json:"status,omitempty"`
	}
	otlpEvent struct {
		Time       string          `json:"timeUnixNano"`
		Name       string          `json:"name"`
		Attributes []otlpAttribute `json:"attributes,omitempty"`
	}
	otlpStatus struct {
		Message string `json:"message,omitempty"`
		Code    int    `json:"code"`
	}
	otlpAttribute struct {
		Key   string    `json:"key"`
		Value otlpValue `json:"value"`
	}
	otlpValue struct { // one of them
		String *string `json:"stringValue,omitempty"`
		Bool   *bool   `json:"boolValue,omitempty"`
		Int    *string `json:"intValue,omitempty"`
		Double any     `json:"doubleValue,omitempty"` // a number, or its name where JSON has none
	}
)

// statusError is the protocol's number; a span without error has no status.
const statusError = 2

// request makes the body of a batch. All its spans are this tracer's, so they
// share one resource and one scope.
func request(spans []sdktrace.ReadOnlySpan) otlpRequest {
	var rs otlpResourceSpans
	var scope otlpScopeSpans
	for i, s := range spans {
		if i == 0 {
			rs.Resource.Attributes = attributes(s.Resource().Attributes())
			scope.Scope.Name, scope.Scope.Version = s.InstrumentationScope().Name, s.InstrumentationScope().Version
		}
		scope.Spans = append(scope.Spans, encodeSpan(s))
	}
	rs.ScopeSpans = []otlpScopeSpans{scope}
	return otlpRequest{[]otlpResourceSpans{rs}}
}

// encodeSpan turns the SDK's view of a span into the protocol's. Links are left
// out: this package makes none.
func encodeSpan(s sdktrace.ReadOnlySpan) otlpSpan {
	id, span := s.SpanContext().TraceID(), s.SpanContext().SpanID()
	out := otlpSpan{
		TraceID: hex.EncodeToString(id[:]), SpanID: hex.EncodeToString(span[:]),
		Flags: uint32(s.SpanContext().TraceFlags()),
		Name:  s.Name(), Kind: int(s.SpanKind()), // the numbers are the protocol's
		Start: nanos(s.StartTime()), End: nanos(s.EndTime()),
		Attributes: attributes(s.Attributes()), DroppedAttributes: s.DroppedAttributes(), DroppedEvents: s.DroppedEvents(),
	}
	if parent := s.Parent(); parent.SpanID().IsValid() {
		p := parent.SpanID()
		out.ParentSpanID = hex.EncodeToString(p[:])
	}
	for _, e := range s.Events() {
		out.Events = append(out.Events, otlpEvent{Time: nanos(e.Time), Name: e.Name, Attributes: attributes(e.Attributes)})
	}
	if st := s.Status(); st.Code == codes.Error {
		out.Status = &otlpStatus{Message: st.Description, Code: statusError}
	}
	return out
}

// nanos writes a time; one before 1970, which only a broken clock tells, as 0.
func nanos(t time.Time) string { return strconv.FormatInt(max(t.UnixNano(), 0), 10) }

func attributes(list []attribute.KeyValue) []otlpAttribute {
	out := make([]otlpAttribute, 0, len(list))
	for _, kv := range list {
		out = append(out, otlpAttribute{string(kv.Key), value(kv.Value)})
	}
	return out
}

// value writes the kinds of values that this package makes; any other as text.
func value(v attribute.Value) otlpValue {
	switch v.Type() {
	case attribute.BOOL:
		b := v.AsBool()
		return otlpValue{Bool: &b}
	case attribute.INT64:
		n := strconv.FormatInt(v.AsInt64(), 10)
		return otlpValue{Int: &n}
	case attribute.FLOAT64:
		f := v.AsFloat64()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			name := map[bool]string{true: "NaN", false: "Infinity"}[math.IsNaN(f)]
			if math.IsInf(f, -1) {
				name = "-Infinity"
			}
			return otlpValue{Double: name}
		}
		return otlpValue{Double: f}
	}
	s := v.String()
	return otlpValue{String: &s}
}
