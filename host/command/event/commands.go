package event

import (
	"context"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Log is the runtime's log of events. Both methods are safe for concurrent use.
type Log interface {
	// Emit returns when the event is durable. It keeps an ID that is given, sets
	// Time where it is zero, and returns the first event for one that the log
	// has already.
	Emit(ctx context.Context, e sentinels.Event) (sentinels.Event, error)
	// NewestEvents returns up to limit events that fit the pattern, the newest last, and with a bound of their
	// bytes whether it left out older ones.
	NewestEvents(pattern string, limit int, bytes int64) (list []sentinels.Event, more bool, err error)
}

// Options say which log the commands work on.
type Options struct {
	Log Log // required
	// Chain returns how many runs an event has passed through that the run with
	// this id emits, itself included, and the ids of their sentinels in order.
	// It lets the log end circles of events and print them. Default nil: 1, and
	// the sentinel that emits.
	Chain func(sentinels.RunID) (hops int, path []string)
}

type family struct{ opt Options }

// Commands returns the family events/*. It panics without a log.
func Commands(opt Options) []command.Command {
	if opt.Log == nil {
		panic("event: Options.Log is nil")
	}
	f := family{opt}
	return []command.Command{
		// Private: an event starts whatever waits for it.
		command.New("events/emit", "Emit an event, which starts the sentinels that wait for it.",
			command.Options{Effect: command.Changes, Idempotent: true, Private: true}, f.emit),
		command.New("events/tail", "Read the newest events.",
			command.Options{Effect: command.Reads, Idempotent: true}, f.tail),
	}
}
