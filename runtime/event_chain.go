package runtime

import (
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A chain is the runs that an event has passed through: their number, and the
// sentinels in order. Events of an older release have no path, and an embedder
// may leave it out, so the number is what counts.
type chain struct {
	hops int
	path []string
}

// with adds what another event brought, if its chain is the longer one.
func (c chain) with(e *sentinels.Event) chain {
	if e == nil {
		return c
	}
	return c.longer(chain{e.Hops, e.Path})
}

func (c chain) longer(o chain) chain {
	if o.hops > c.hops {
		return o
	}
	return c
}

// through is the chain behind one more run.
func (c chain) through(id sentinels.ID) chain {
	return chain{c.hops + 1, append(slices.Clip(c.path), string(id))}
}

// refuse is the error for a chain that has become too long. It names every
// sentinel on the way, so that the circle can be seen and cut.
func (c chain) refuse(event string, limit int) *abi.Error {
	return errf(abi.Limit, "event %q would pass through %d runs, the limit is %d: a chain of events runs in a circle%s", event, c.hops, limit, c.way())
}

// refuseStart is the same for a run that another one starts by a command.
func (c chain) refuseStart(id sentinels.ID, limit int) *abi.Error {
	return errf(abi.Limit, "sentinel %q would be run %d of a chain, the limit is %d: sentinels start each other in a circle%s", id, c.hops, limit, c.way())
}

// way is the sentinels on the way, to be put behind a message.
func (c chain) way() string {
	if len(c.path) == 0 {
		return ""
	}
	return ": " + strings.Join(c.path, " -> ")
}

// chain is that of an event which the run emits now: those before the run that started
// the run and before the events that the pass answers or has waited for, and the
// run itself.
func (r *run) chain() chain {
	r.mu.Lock()
	defer r.mu.Unlock()
	begun := chain{r.begin.Hops, r.begin.Path}
	return begun.with(r.state.Event).longer(chain{r.state.Chain.Hops, r.state.Chain.Path}).through(r.begin.Sentinel)
}

// Chain returns how many runs an event has passed through that the given run
// emits now, itself included, and the sentinels they are of, in order; 0 for a
// run that this process does not execute.
func (rt *Runtime) Chain(id sentinels.RunID) (hops int, path []string) {
	r := rt.live(id)
	if r == nil {
		return 0, nil
	}
	c := r.chain()
	return c.hops, c.path
}
