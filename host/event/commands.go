package event

import (
	"context"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Log is the runtime's log of events. Both methods are safe for concurrent use.
type Log interface {
	// Emit returns when the event is durable. It keeps an ID that is given and
	// sets Time where it is zero.
	Emit(ctx context.Context, e sentinels.Event) (sentinels.Event, error)
	// Events returns up to limit events that fit the pattern, the newest last.
	Events(pattern string, limit int) ([]sentinels.Event, error)
}

// Options say which log the commands work on.
type Options struct {
	Log Log // required
	// Hops returns how many runs the chain of events has passed through that
	// the run with this id belongs to. It lets the log end circles of events.
	// Default nil: 0, and 1 for an event that a run emits.
	Hops func(sentinels.RunID) int
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
			command.Options{Idempotent: true, Private: true}, f.emit),
		command.New("events/tail", "Read the newest events.",
			command.Options{ReadOnly: true, Idempotent: true}, f.tail),
	}
}
