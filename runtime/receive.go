package runtime

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// Receive hands a request from outside to a trigger of a sentinel and returns,
// when that is durable, what became of each thing that the request fired. The
// trigger is named by its name or its index; empty means the only one that takes
// requests. Errors are those of the trigger, denied for a bad secret; not_found,
// conflict while the triggers are paused, unavailable while none is armed. What
// was admitted before an error is returned with it.
func (rt *Runtime) Receive(ctx context.Context, id sentinels.ID, trigger string, req triggers.Request) ([]triggers.Admission, error) {
	if len(req.Body) > triggers.MaxBody {
		return nil, errf(abi.Limit, "receive for %q: the body has %d bytes, more than %d", id, len(req.Body), triggers.MaxBody)
	}
	if err := rt.writable(); err != nil {
		return nil, err
	}
	// An edit between finding the trigger and admitting what it fired puts
	// another in its place, which is asked anew. One is enough as a rule; a storm
	// of edits ends it with an error that says to come again.
	for range 5 {
		out, err := rt.receive(ctx, id, trigger, req)
		if !errors.Is(err, errDisarmed) || len(out) > 0 {
			return out, err
		}
	}
	return nil, notArmed(id)
}

func (rt *Runtime) receive(ctx context.Context, id sentinels.ID, trigger string, req triggers.Request) ([]triggers.Admission, error) {
	if _, err := rt.Definition(id); err != nil {
		return nil, err
	}
	s := rt.arming.sentinel(id)
	switch {
	case s == nil:
		return nil, notArmed(id)
	case s.paused:
		e := errf(abi.Conflict, "the triggers of sentinel %q are paused", id)
		e.Hint = "resume the sentinel"
		return nil, e
	}
	t, err := s.receiver(trigger)
	if err != nil {
		return nil, err
	}
	// Secrets and signatures are the kind's to check, before anything is decided.
	fires, err := t.armed.(triggers.Receiver).Receive(req)
	if err != nil {
		return nil, err
	}
	// A batch of events is admitted one by one: each has an outcome of its own.
	out := make([]triggers.Admission, 0, len(fires))
	for _, f := range fires {
		adm, ticket, err := t.admit(ctx, f, false)
		if err == nil {
			err = rt.await(ctx, ticket) // whoever sent it may forget it then
		}
		if err != nil {
			return out, fmt.Errorf("receive for %q: %w", id, err)
		}
		out = append(out, adm)
	}
	return out, nil
}

// receiver finds the trigger that takes requests under a name or an index, or
// the only one. An error says which there are.
func (s *armedSentinel) receiver(name string) (*armedTrigger, error) {
	var found []*armedTrigger
	var there []string
	for _, t := range s.triggers {
		if _, ok := t.armed.(triggers.Receiver); !ok {
			continue
		}
		there = append(there, t.name)
		if name == "" || name == t.name || name == strconv.Itoa(t.index) {
			found = append(found, t)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		e := errf(abi.BadFields, "sentinel %q has %d triggers that take requests", s.id, len(found))
		e.Hint = "name one of " + strings.Join(there, ", ")
		return nil, e
	}
	e := errf(abi.NotFound, "sentinel %q has no trigger %q that takes requests", s.id, name)
	if name == "" {
		e = errf(abi.NotFound, "sentinel %q has no trigger that takes requests", s.id)
	}
	if len(there) > 0 {
		e.Hint = "there are " + strings.Join(there, ", ")
	}
	return nil, e
}
