package eventlog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A Chain is the runs that an event has passed through: their number, and the
// sentinels in order. A client may emit an event without the path, so the number
// is what counts. Chains are values; methods leave theirs unchanged.
type Chain struct {
	Hops int
	Path []string
}

// ChainOf returns the chain of an event, an empty one for nil.
func ChainOf(e *sentinels.Event) Chain {
	if e == nil {
		return Chain{}
	}
	return Chain{e.Hops, e.Path}
}

// Longer returns the longer of two chains, c if both have the same length.
func (c Chain) Longer(o Chain) Chain {
	if o.Hops > c.Hops {
		return o
	}
	return c
}

// Through returns the chain with one more run, of the sentinel id.
func (c Chain) Through(id sentinels.ID) Chain {
	return Chain{c.Hops + 1, append(slices.Clip(c.Path), string(id))}
}

// Including returns the chain with the sentinels that are missing in its path before it:
// those that led to a run in other ways than the longest chain.
func (c Chain) Including(ids ...string) Chain {
	var missing []string
	for _, id := range ids {
		if !slices.Contains(c.Path, id) && !slices.Contains(missing, id) {
			missing = append(missing, id)
		}
	}
	if len(missing) > 0 {
		c.Path = append(missing, c.Path...)
	}
	return c
}

// Refuse returns the error limit for an event whose chain is too long. It names
// every sentinel on the way, so that the user can find the circle and cut it.
func (c Chain) Refuse(event string, limit int) *abi.Error {
	return &abi.Error{Code: abi.Limit, Message: fmt.Sprintf("event %q would pass through %d runs, the limit is %d: a chain of events runs in a circle%s",
		event, c.Hops, limit, c.way())}
}

// RefuseStart is Refuse for a run that another one starts by a command.
func (c Chain) RefuseStart(id sentinels.ID, limit int) *abi.Error {
	return &abi.Error{Code: abi.Limit, Message: fmt.Sprintf("sentinel %q would be run %d of a chain, the limit is %d: sentinels start each other in a circle%s",
		id, c.Hops, limit, c.way())}
}

// way is the sentinels on the way, to be appended to a message.
func (c Chain) way() string {
	if len(c.Path) == 0 {
		return ""
	}
	return ": " + strings.Join(c.Path, " -> ")
}
