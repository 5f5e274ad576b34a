package dispatch

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// Receive passes a request from outside to a trigger of a sentinel and returns the
// outcome of each firing that the request causes, once they are durable. trigger is
// its name or its index; empty means the only one that accepts requests.
//
// Errors are those of the trigger: denied for a wrong secret; not_found if no
// trigger accepts requests; unavailable while no triggers are armed. Only a request
// that its trigger accepts gets others: conflict while the triggers are paused,
// bad_fields if several triggers accept requests and none is named. Outcomes from
// before an error are returned with it.
func (d *Dispatcher) Receive(ctx context.Context, id sentinels.ID, trigger string, req triggers.Request) ([]triggers.Admission, error) {
	if len(req.Body) > triggers.MaxBody {
		return nil, failure.New(abi.Limit, "receive for %q: the body has %d bytes, more than %d", id, len(req.Body), triggers.MaxBody)
	}
	if err := d.opt.Writable(); err != nil {
		return nil, err
	}
	// An edit between finding the trigger and admitting its firings replaces the
	// trigger, so the new one is used. One repetition is usually enough; during a
	// storm of edits the sender gets an error and repeats the request.
	for range 5 {
		out, err := d.receive(ctx, id, trigger, req)
		if !errors.Is(err, errDisarmed) || len(out) > 0 {
			return out, err
		}
	}
	return nil, notArmed(id)
}

func (d *Dispatcher) receive(ctx context.Context, id sentinels.ID, trigger string, req triggers.Request) ([]triggers.Admission, error) {
	if !d.armed() {
		return nil, notArmed(id)
	}
	s := d.sentinel(id)
	if s == nil {
		return nil, failure.New(abi.NotFound, "sentinel %q has no trigger that accepts requests", id)
	}
	t, firings, err := s.receiver(trigger, req)
	if err != nil {
		return nil, err
	}
	if req.Accepted != nil {
		req.Accepted()
	}
	if len(firings) == 0 { // accepted, and nothing to start
		return []triggers.Admission{}, nil
	}
	if s.paused {
		t.refuse("the triggers are paused")
		e := failure.New(abi.Conflict, "the triggers of sentinel %q are paused", id)
		e.Hint = "resume the sentinel"
		return nil, e
	}
	continueChain(firings, req)
	// Each event of a batch has an outcome of its own.
	out := make([]triggers.Admission, 0, len(firings))
	for _, f := range firings {
		adm, ticket, err := t.admit(ctx, f, false)
		if err == nil {
			err = d.opt.Await(ctx, ticket) // the sender may forget it afterwards
		}
		if err != nil {
			return out, fmt.Errorf("receive for %q: %w", id, err)
		}
		out = append(out, adm)
	}
	return out, nil
}

// continueChain gives the events of a request that a step of a run sent the chain of that
// run, so that runs which send requests to their own host end (T2.4).
func continueChain(firings []triggers.Firing, req triggers.Request) {
	if req.Chain == nil {
		return
	}
	hops, path := req.Chain()
	for i, f := range firings {
		if hops > 0 && f.Event != nil {
			event := *f.Event
			event.Hops, event.Path = hops, path
			firings[i].Event = &event
		}
	}
}

// receiver returns the trigger that accepts requests with a name or an index, or
// the only one, and the firings that the request causes. If there are several, the
// error names them, but only to a request that one of them accepts.
func (s *armedSentinel) receiver(name string, req triggers.Request) (*armedTrigger, []triggers.Firing, error) {
	var found []*armedTrigger
	var names []string
	for _, t := range s.triggers {
		if _, ok := t.armed.(triggers.Receiver); ok && (name == "" || name == t.name || name == strconv.Itoa(t.index)) {
			found, names = append(found, t), append(names, t.name)
		}
	}
	denied := error(failure.New(abi.NotFound, "sentinel %q has no trigger %q that accepts requests", s.id, name))
	type refusal struct {
		of     *armedTrigger
		reason string
	}
	var refused []refusal
	for _, t := range found {
		// The kind checks secrets and signatures before anything is decided.
		firings, err := t.armed.(triggers.Receiver).Receive(req)
		switch {
		case abi.CodeOf(err) == abi.Denied:
			denied, refused = err, append(refused, refusal{t, messageOf(err)})
		case len(found) > 1:
			e := failure.New(abi.BadFields, "sentinel %q has %d triggers that accept requests", s.id, len(found))
			e.Hint = "name one of " + strings.Join(names, ", ")
			return nil, nil, e
		default:
			if err != nil {
				t.refuse(messageOf(err))
			}
			return t, firings, err
		}
	}
	for _, r := range refused {
		r.of.refuse(r.reason)
	}
	return nil, nil, denied
}
