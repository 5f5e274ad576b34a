package tracing

import (
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Progress makes spans of what the engine tells. It is meant to be a
// [runtime.Observer]'s function.
//
// What has ended says how long it took, which is measured where it happened;
// a start is reported when it is durable, a little late. So a span
// begins at the earlier of the two.
func (t *Tracer) Progress(p runtime.Progress) {
	if p.Run == "" || p.Event.Partial() || p.Event == runtime.OnLog {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.of(p)
	if !r.keep { // remembered all the same, so that it is decided once
		if p.Event == runtime.OnRunEnd {
			delete(t.runs, r.id)
		}
		return
	}
	r.enter(p)
	switch p.Event {
	case runtime.OnStepStart, runtime.OnCallStart:
		t.begin(r, p)
	case runtime.OnCallEnd:
		t.begin(r, p) // where the process has heard nothing of the step before
		t.endCall(r, p)
	case runtime.OnRetry:
		t.begin(r, p)
		t.endAttempt(r, r.steps[p.Path], p.Path, p.Time, p.Error, attribute.String("sentinel.retry.category", p.Category))
	case runtime.OnStepEnd:
		t.endStep(r, p)
	case runtime.OnStatus:
		if len(r.notes) < maxNotes {
			r.notes = append(r.notes, note{p.Time, string(p.Status), textcut.Mark(p.Message, maxText)})
		}
	case runtime.OnIterationEnd:
		t.endIteration(r, p.Time, p.Duration, nil)
	case runtime.OnRunEnd:
		t.endRun(r, p)
	}
}

// enter notes the iteration that p belongs to.
func (r *run) enter(p runtime.Progress) {
	if p.Revision > 0 {
		r.revision = p.Revision
	}
	switch p.Event {
	case runtime.OnRunStart, runtime.OnRunEnd, runtime.OnStatus: // may name an iteration that has ended
		return
	}
	if p.Iteration != r.iteration {
		r.iteration, r.since = p.Iteration, p.Time
	}
}

// begin notes a step's attempt that is under way.
func (t *Tracer) begin(r *run, p runtime.Progress) {
	s := r.steps[p.Path]
	if s == nil {
		if t.open >= t.opt.Open {
			return
		}
		if r.steps == nil {
			r.steps = map[string]*step{}
		}
		s = &step{address: p.Address, name: p.Step, kind: string(p.Type), since: p.Time.Add(-p.Duration)}
		r.steps[p.Path] = s
		t.open++
	}
	if p.Attempt != s.attempt && p.Attempt > 0 {
		s.attempt, s.begun = p.Attempt, p.Time.Add(-p.Duration)
	}
}

// The ids of the places in a run: the run itself, the iteration under way, and
// in it a step and an attempt of one.
func (r *run) self() trace.SpanID          { return spanID(r.id, "run", 0, "", 0) }
func (r *run) pass() trace.SpanID          { return spanID(r.id, "iteration", r.iteration, "", 0) }
func (r *run) at(path string) trace.SpanID { return spanID(r.id, "step", r.iteration, path, 0) }
func (r *run) try(path string, n int) trace.SpanID {
	return spanID(r.id, "attempt", r.iteration, path, n)
}

// around returns what a step is in: a step that runs it, or the iteration.
func (r *run) around(path string) trace.SpanContext {
	if i := strings.LastIndexByte(path, '#'); i >= 0 {
		return r.context(r.at(path[:i]))
	}
	return r.context(r.pass())
}

// common is what every span of a run says.
func (r *run) common(more ...attribute.KeyValue) []attribute.KeyValue {
	return append([]attribute.KeyValue{attribute.String("sentinel.run.id", string(r.id))}, more...)
}

// about is what the spans of a step say.
func (r *run) about(address, kind, name string) []attribute.KeyValue {
	out := r.common(attribute.Int("sentinel.iteration", r.iteration), attribute.String("sentinel.step.address", address), attribute.String("sentinel.step.type", kind))
	if name != "" {
		out = append(out, attribute.String("sentinel.step.name", name))
	}
	return out
}

// endCall makes a call's span. Its parent is the attempt by number, which may
// have begun in an earlier process.
func (t *Tracer) endCall(r *run, p runtime.Progress) {
	s := span{
		parent: r.context(r.try(p.Path, p.Attempt)), kind: trace.SpanKindInternal,
		start: p.Time.Add(-p.Duration), end: p.Time, err: p.Error,
		attributes: append(r.about(p.Address, string(p.Type), p.Step), attribute.Int("sentinel.attempt", p.Attempt), attribute.String("sentinel.call.function", p.Function)),
	}
	// An attempt makes one call after the other, so the time tells them apart.
	s.id = spanID(r.id, "call "+p.Function, r.iteration, p.Path, int(s.start.UnixNano()))
	what := strings.TrimPrefix(p.Function, "sentinel_")
	switch p.Function {
	case abi.FuncLLM:
		what, s.kind = "chat", trace.SpanKindClient
		s.attributes = append(s.attributes, attribute.String("gen_ai.operation.name", "chat"))
		if p.Label != "" {
			s.attributes = append(s.attributes, attribute.String("gen_ai.request.model", p.Label))
		}
	case abi.FuncEmit:
		s.kind = trace.SpanKindProducer
	}
	s.name = what
	if p.Label != "" {
		s.name += " " + p.Label
		s.attributes = append(s.attributes, attribute.String("sentinel.call.label", p.Label))
	}
	if u := p.Usage; u != nil {
		s.attributes = append(s.attributes, attribute.Int64("gen_ai.usage.input_tokens", u.InputTokens),
			attribute.Int64("gen_ai.usage.output_tokens", u.OutputTokens), attribute.Float64("sentinel.cost_usd", u.CostUSD))
	}
	t.emit(r, s)
}

// endAttempt ends the attempt of a step that is under way, if one is.
func (t *Tracer) endAttempt(r *run, s *step, path string, end time.Time, err *abi.Error, more ...attribute.KeyValue) {
	if s == nil || s.attempt == 0 {
		return
	}
	t.emit(r, span{
		id: r.try(path, s.attempt), parent: r.context(r.at(path)), name: "attempt", kind: trace.SpanKindInternal,
		start: s.begun, end: end, err: err,
		attributes: append(append(r.about(s.address, s.kind, s.name), attribute.Int("sentinel.attempt", s.attempt)), more...),
	})
	s.attempt = 0
}

// endStep ends a step and its last attempt.
func (t *Tracer) endStep(r *run, p runtime.Progress) {
	start := p.Time.Add(-p.Duration)
	s := r.steps[p.Path]
	if s == nil {
		// Begun by an earlier process, or beyond what is remembered. Which attempt
		// ended is not told; it is the first one more often than not.
		s = &step{address: p.Address, name: p.Step, kind: string(p.Type), since: start}
		if p.Skipped != "condition" {
			s.attempt, s.begun = 1, start
		}
	} else {
		t.forget(r, p.Path)
	}
	if s.since.Before(start) {
		start = s.since
	}
	if s.attempt == 1 && start.Before(s.begun) {
		s.begun = start
	}
	t.endAttempt(r, s, p.Path, p.Time, p.Error)
	out := span{
		id: r.at(p.Path), parent: r.around(p.Path), name: "step " + string(p.Type), kind: trace.SpanKindInternal,
		start: start, end: p.Time, err: p.Error, attributes: r.about(p.Address, string(p.Type), p.Step),
	}
	if p.Skipped != "" {
		out.attributes = append(out.attributes, attribute.String("sentinel.step.skipped", p.Skipped))
	}
	t.emit(r, out)
}

// forget removes a step that was remembered.
func (t *Tracer) forget(r *run, path string) {
	delete(r.steps, path)
	t.open--
}

// endIteration ends the iteration under way. took is 0 where it was cut off.
func (t *Tracer) endIteration(r *run, end time.Time, took time.Duration, err *abi.Error) {
	start := end.Add(-took)
	if r.since.Before(start) {
		start = r.since
	}
	t.emit(r, span{
		id: r.pass(), parent: r.context(r.self()), name: "iteration", kind: trace.SpanKindInternal, start: start, end: end, err: err,
		attributes: r.common(attribute.Int("sentinel.iteration", r.iteration), attribute.Int("sentinel.revision", r.revision)),
	})
	r.ended = r.iteration
}

// endRun ends the run's span, and before it those of what was cut off: of that
// no end is reported.
func (t *Tracer) endRun(r *run, p runtime.Progress) {
	cut := p.Error
	if cut == nil && len(r.steps) > 0 {
		cut = abi.New(abi.Cancelled, "the run ended")
	}
	for path, s := range r.steps {
		t.endAttempt(r, s, path, p.Time, cut)
		t.emit(r, span{
			id: r.at(path), parent: r.around(path), name: "step " + s.kind, kind: trace.SpanKindInternal,
			start: s.since, end: p.Time, err: cut, attributes: r.about(s.address, s.kind, s.name),
		})
		t.forget(r, path)
	}
	if r.iteration > r.ended {
		t.endIteration(r, p.Time, 0, cut)
	}
	attributes := r.common(attribute.String("sentinel.id", string(p.Sentinel)), attribute.String("sentinel.run.root", string(r.root)),
		attribute.String("sentinel.run.status", string(p.Status)), attribute.Int("sentinel.revision", r.revision), attribute.Int("sentinel.iteration", p.Iteration))
	if p.Reason != "" {
		attributes = append(attributes, attribute.String("sentinel.run.reason", p.Reason))
	}
	if u := p.Usage; u != nil {
		attributes = append(attributes, attribute.Int64("gen_ai.usage.input_tokens", u.InputTokens),
			attribute.Int64("gen_ai.usage.output_tokens", u.OutputTokens), attribute.Float64("sentinel.cost_usd", u.CostUSD))
	}
	t.emit(r, span{
		id: r.self(), parent: r.parent, name: "run " + string(p.Sentinel), kind: trace.SpanKindInternal,
		start: r.born, end: p.Time, err: p.Error, notes: r.notes, attributes: attributes,
	})
	delete(t.runs, r.id)
}
