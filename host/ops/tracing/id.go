package tracing

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// traceID is the root run's id: a UUID is as long as a trace id. Other ids,
// which only tests make, are digested.
func traceID(root sentinels.RunID) trace.TraceID {
	if b, ok := uuid(root); ok {
		return trace.TraceID(b)
	}
	sum := sha256.Sum256([]byte("trace " + string(root)))
	return trace.TraceID(sum[:16])
}

// spanID names a place in a run, the same in every process.
func spanID(run sentinels.RunID, what string, iteration int, path string, n int) trace.SpanID {
	b := make([]byte, 0, 128)
	for _, s := range []string{string(run), what, strconv.Itoa(iteration), path, strconv.Itoa(n)} {
		b = append(append(b, s...), 0)
	}
	sum := sha256.Sum256(b)
	return trace.SpanID(sum[:8])
}

func uuid(run sentinels.RunID) (b [16]byte, ok bool) {
	digits := strings.ReplaceAll(string(run), "-", "")
	if len(run) != 36 || len(digits) != 32 {
		return b, false
	}
	_, err := hex.Decode(b[:], []byte(digits))
	return b, err == nil && b != [16]byte{}
}

// bornAt reads when a run was made from its id, a UUID of version 7; zero if it
// is another.
func bornAt(run sentinels.RunID) time.Time {
	b, ok := uuid(run)
	if !ok || b[6]>>4 != 7 {
		return time.Time{}
	}
	ms := int64(binary.BigEndian.Uint64(b[:8]) >> 16) // the first 48 bits
	return time.UnixMilli(ms)
}

// kept decides by the 56 bits of a trace id that are random in every version of
// a UUID that runs have, and by the specification in every other trace id. The
// SDK's own sampler takes bits that are fixed in a UUID.
func kept(id trace.TraceID, part float64) bool {
	const bits = 56
	low := binary.BigEndian.Uint64(id[8:]) & (1<<bits - 1)
	return float64(low) < part*(1<<bits)
}

// ids makes the SDK use the id that is in the context.
type ids struct{}

type idKey struct{}

type spanIDs struct {
	trace trace.TraceID
	span  trace.SpanID
}

func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	v := ctx.Value(idKey{}).(spanIDs) // only Tracer.emit starts spans
	return v.trace, v.span
}

func (g ids) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	_, id := g.NewIDs(ctx)
	return id
}

var _ sdktrace.IDGenerator = ids{}
