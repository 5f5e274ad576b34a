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
// requests.
//
// Errors are those of the trigger: denied for a bad secret; not_found where no
// trigger takes requests; unavailable while triggers are not armed at all. Only a
// request that its trigger accepts learns more: conflict while the triggers are
// paused, bad_fields where several triggers take requests and none is named. What
// was admitted before an error is returned with it.
func (rt *Runtime) Receive(ctx context.Context, id sentinels.ID, trigger string, req triggers.Request) ([]triggers.Admission, error) {
	if len(req.Body) > triggers.MaxBody {
		return nil, errf(abi.Limit, "receive for %q: the body has %d bytes, more than %d", id, len(req.Body), triggers.MaxBody)
	}
	if err := rt.writable(); err != nil {
		return nil, err
	}
	// An edit between finding the trigger and admitting what it fired puts another
	// trigger in its place, which is asked instead. One repetition is enough as a
	// rule; a storm of edits ends in an error that says to come again.
	for range 5 {
		out, err := rt.receive(ctx, id, trigger, req)
		if !errors.Is(err, errDisarmed) || len(out) > 0 {
			return out, err
		}
	}
	return nil, notArmed(id)
}

func (rt *Runtime) receive(ctx context.Context, id sentinels.ID, trigger string, req triggers.Request) ([]triggers.Admission, error) {
	if !rt.arming.armed() {
		return nil, notArmed(id)
	}
	s := rt.arming.sentinel(id)
	if s == nil {
		return nil, errf(abi.NotFound, "sentinel %q has no trigger that takes requests", id)
	}
	t, fires, err := s.ask(trigger, req)
	if err != nil {
		return nil, err
	}
	if s.paused {
		e := errf(abi.Conflict, "the triggers of sentinel %q are paused", id)
		e.Hint = "resume the sentinel"
		return nil, e
	}
	// A batch of events is admitted one by one: each has an outcome of its own.
	out := make([]triggers.Admission, 0, len(fires))
	for _, f := range fires {
		adm, ticket, err := t.admit(ctx, f, false)
		if err == nil {
			err = rt.await(ctx, ticket) // the sender may forget it then
		}
		if err != nil {
			return out, fmt.Errorf("receive for %q: %w", id, err)
		}
		out = append(out, adm)
	}
	return out, nil
}

// ask returns the trigger that takes requests under a name or an index, or the
// only one, and what it makes of the request. Where there are several, the error
// names them to a request that one of them accepts, and to no other.
func (s *armedSentinel) ask(name string, req triggers.Request) (*armedTrigger, []triggers.Firing, error) {
	var found []*armedTrigger
	var names []string
	for _, t := range s.triggers {
		if _, ok := t.armed.(triggers.Receiver); ok && (name == "" || name == t.name || name == strconv.Itoa(t.index)) {
			found, names = append(found, t), append(names, t.name)
		}
	}
	denied := error(errf(abi.NotFound, "sentinel %q has no trigger %q that takes requests", s.id, name))
	for _, t := range found {
		// Secrets and signatures are the kind's to check, before anything is decided.
		fires, err := t.armed.(triggers.Receiver).Receive(req)
		switch {
		case abi.CodeOf(err) == abi.Denied:
			denied = err
		case len(found) > 1:
			e := errf(abi.BadFields, "sentinel %q has %d triggers that take requests", s.id, len(found))
			e.Hint = "name one of " + strings.Join(names, ", ")
			return nil, nil, e
		default:
			return t, fires, err
		}
	}
	return nil, nil, denied
}
