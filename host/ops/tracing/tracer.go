package tracing

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A Tracer makes spans of progress and sends them.
//
// # Concurrency
//
// [Tracer.Progress] may be called from several goroutines and never waits for
// the network. The tracer's own goroutine sends; [Tracer.Close] waits for it.
type Tracer struct {
	opt      Options
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	queue    *queue // its goroutine is the only one that the tracer has

	mu   sync.Mutex // held while spans are made, so that those of a run keep their order
	runs map[sentinels.RunID]*run
	open int // steps in runs
}

// New makes a tracer and starts its goroutine; [Tracer.Close] ends it.
func New(o Options) (*Tracer, error) {
	if err := o.settle(); err != nil {
		return nil, err
	}
	about := []attribute.KeyValue{attribute.String("service.name", o.Service)}
	if o.Version != "" {
		about = append(about, attribute.String("service.version", o.Version))
	}
	for k, v := range o.Resource {
		about = append(about, attribute.String(k, v))
	}
	t := &Tracer{opt: o, queue: newQueue(&exporter{opt: o}, o), runs: map[sentinels.RunID]*run{}}
	t.provider = sdktrace.NewTracerProvider(
		sdktrace.WithResource(resource.NewSchemaless(about...)),
		sdktrace.WithSampler(sdktrace.AlwaysSample()), // what is not kept does not come so far
		sdktrace.WithIDGenerator(ids{}),
		sdktrace.WithSpanProcessor(t.queue),
	)
	t.tracer = t.provider.Tracer("github.com/sentinel-runtime/sentinel", trace.WithInstrumentationVersion(o.Version))
	return t, nil
}

// Close sends what has ended, for as long as ctx allows, and ends the tracer's
// goroutine. Open spans are not lost: a process that resumes their runs
// ends them. It may be called twice.
func (t *Tracer) Close(ctx context.Context) error { return t.provider.Shutdown(ctx) }

// Stats is how a tracer fares.
type Stats struct {
	Sent    uint64 // spans that were taken
	Dropped uint64 // spans that found the queue full
	Failed  uint64 // spans that were given up or refused
}

// Stats returns how the tracer fares.
func (t *Tracer) Stats() Stats { return t.queue.stats() }

// A run is what is remembered of one that is not over.
type run struct {
	id     sentinels.RunID
	root   sentinels.RunID
	trace  trace.TraceID     // of the root, or of who asked for it
	parent trace.SpanContext // of the run's span; not valid if it has none
	keep   bool              // sampled: decided once, for all of a trace alike
	born   time.Time         // from the id, or when it was first heard of
	steps  map[string]*step  // under way, by path

	iteration int       // that is under way, or was last
	ended     int       // that has ended last
	since     time.Time // of the iteration, as far as is known
	revision  int
	notes     []note // for the run's own span
}

// A step is one under way: with the attempt that is.
type step struct {
	address, name, kind string
	since               time.Time // of the step, as far as is known
	attempt             int       // 0 between two
	begun               time.Time // of the attempt
}

// A note is a status that a run had on its way.
type note struct {
	at     time.Time
	status string
	reason string
}

// maxNotes bounds the notes of one run: the first ones stay.
const maxNotes = 32

// of returns what is known of the run that p is about. The caller holds t.mu.
func (t *Tracer) of(p runtime.Progress) *run {
	if r := t.runs[p.Run]; r != nil {
		return r
	}
	r := &run{id: p.Run, root: p.Root, born: bornAt(p.Run)}
	if r.root == "" {
		r.root = p.Run
	}
	if r.born.IsZero() || r.born.After(p.Time) {
		r.born = p.Time
	}
	r.trace = traceID(r.root)
	if t.opt.Parent != nil {
		r.parent = parse(t.opt.Parent(r.root))
	}
	if r.parent.IsValid() {
		r.trace, r.keep = r.parent.TraceID(), r.parent.IsSampled() // who asked has decided
	} else {
		r.keep = kept(r.trace, t.opt.Sample)
	}
	if r.id != r.root {
		r.parent = r.context(spanID(r.root, "run", 0, "", 0)) // progress does not say which run spawned it
	}
	t.runs[p.Run] = r
	return r
}

// context makes a parent of an id. To the SDK every parent is remote: it never
// holds the span that the id is of.
func (r *run) context(id trace.SpanID) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: r.trace, SpanID: id, TraceFlags: trace.FlagsSampled, Remote: true})
}

// parse reads a W3C traceparent. What is not one is no parent, as the
// recommendation has it.
func parse(traceparent string) trace.SpanContext {
	if traceparent == "" {
		return trace.SpanContext{}
	}
	carrier := propagation.MapCarrier{"traceparent": traceparent}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}

// span is one that has ended.
type span struct {
	id         trace.SpanID
	parent     trace.SpanContext
	name       string
	kind       trace.SpanKind
	start, end time.Time
	attributes []attribute.KeyValue
	err        *abi.Error
	notes      []note
}

// emit hands a span to the SDK, which hands it to the queue.
func (t *Tracer) emit(r *run, s span) {
	if s.start.After(s.end) { // clocks of two processes
		s.start = s.end
	}
	if s.err != nil {
		s.attributes = append(s.attributes, attribute.String("error.type", string(s.err.Code)))
	}
	ctx := context.WithValue(context.Background(), idKey{}, spanIDs{r.trace, s.id})
	if s.parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, s.parent)
	}
	_, out := t.tracer.Start(ctx, s.name, trace.WithTimestamp(s.start), trace.WithSpanKind(s.kind), trace.WithAttributes(s.attributes...))
	for _, n := range s.notes {
		out.AddEvent("status", trace.WithTimestamp(n.at), trace.WithAttributes(
			attribute.String("sentinel.run.status", n.status), attribute.String("sentinel.run.reason", n.reason)))
	}
	if s.err != nil {
		out.SetStatus(codes.Error, textcut.Mark(s.err.Message, maxText))
	}
	out.End(trace.WithTimestamp(s.end))
}

// maxText bounds texts in spans, in bytes.
const maxText = 1 << 10
