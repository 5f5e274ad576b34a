package tracing

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// A queue holds ended spans until they are sent. It stands where the SDK's own
// batcher could, which drops spans silently: here they are counted.
type queue struct {
	exporter *exporter
	opt      Options
	spans    chan sdktrace.ReadOnlySpan
	flush    chan chan struct{} // answered by closing what was sent

	end    context.CancelFunc // sending is given up
	ctx    context.Context
	once   sync.Once
	stop   chan struct{} // no more spans come
	ended  chan struct{} // the goroutine has returned
	drops  atomic.Uint64 // found no room
	sent   atomic.Uint64
	failed atomic.Uint64 // given up, or refused by the collector
}

func newQueue(e *exporter, o Options) *queue {
	q := &queue{
		exporter: e, opt: o, spans: make(chan sdktrace.ReadOnlySpan, o.Queue), flush: make(chan chan struct{}),
		stop: make(chan struct{}), ended: make(chan struct{}),
	}
	q.ctx, q.end = context.WithCancel(context.Background())
	go q.send()
	return q
}

// OnStart is part of the interface; what begins is no concern of ours.
func (q *queue) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd takes a span, or counts it where there is no room.
func (q *queue) OnEnd(s sdktrace.ReadOnlySpan) {
	select {
	case <-q.stop:
		q.drops.Add(1)
		return
	default:
	}
	select {
	case q.spans <- s:
	default:
		q.drops.Add(1)
	}
}

// ForceFlush returns when everything that came before has been sent or given up.
func (q *queue) ForceFlush(ctx context.Context) error {
	answer := make(chan struct{})
	select {
	case q.flush <- answer:
	case <-q.ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-answer:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Shutdown sends what is there, gives up when ctx ends, and waits for the
// goroutine either way.
func (q *queue) Shutdown(ctx context.Context) error {
	q.once.Do(func() { close(q.stop) })
	defer q.end()
	select {
	case <-q.ended:
		return nil
	case <-ctx.Done():
		q.end()
		<-q.ended
		return context.Cause(ctx)
	}
}

// send is the queue's goroutine.
func (q *queue) send() {
	defer close(q.ended)
	batch := make([]sdktrace.ReadOnlySpan, 0, q.opt.Batch)
	export := func() { // what is gathered
		if len(batch) == 0 {
			return
		}
		refused, err := q.exporter.export(q.ctx, batch)
		if err != nil {
			refused = len(batch)
		}
		q.failed.Add(uint64(refused))
		q.sent.Add(uint64(len(batch) - refused))
		clear(batch)
		batch = batch[:0]
	}
	rest := func() { // all that is in the channel
		for {
			select {
			case s := <-q.spans:
				if batch = append(batch, s); len(batch) == q.opt.Batch {
					export()
				}
				continue
			default:
			}
			export()
			return
		}
	}
	every := time.NewTicker(q.opt.Every)
	defer every.Stop()
	for {
		select {
		case s := <-q.spans:
			if batch = append(batch, s); len(batch) == q.opt.Batch {
				export()
			}
		case <-every.C:
			export()
		case answer := <-q.flush:
			rest()
			close(answer)
		case <-q.stop:
			rest()
			return
		}
	}
}

func (q *queue) stats() Stats {
	return Stats{Sent: q.sent.Load(), Dropped: q.drops.Load(), Failed: q.failed.Load()}
}

var _ sdktrace.SpanProcessor = (*queue)(nil)
