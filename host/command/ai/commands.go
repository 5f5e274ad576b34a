package ai

import (
	"context"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Models answers turns. It is safe for concurrent use and honours ctx.
type Models interface {
	// Turn makes one turn; delta, if not nil, receives the text as it arrives.
	Turn(ctx context.Context, turn sentinels.Turn, delta func(text string)) (sentinels.Reply, error)
	// Quote returns which model a turn would have, and whether its price is known.
	Quote(ctx context.Context, turn sentinels.Turn) (provider, model string, priced bool, err error)
}

// Options say who answers.
type Options struct {
	Models  Models        // required
	Timeout time.Duration // of a call that brings no deadline; default 10 minutes
}

type family struct{ models Models }

// Commands returns the family ai/*. It panics without models.
func Commands(opt Options) []command.Command {
	if opt.Models == nil {
		panic("ai: Options.Models is nil")
	}
	if opt.Timeout == 0 {
		opt.Timeout = 10 * time.Minute
	}
	f := family{opt.Models}
	// Idempotent, as a second turn changes nothing in the world; it is not
	// called read-only because clients take that for free of charge.
	how := command.Options{Effect: command.Changes, Idempotent: true, Private: true, Waits: command.Always, Timeout: opt.Timeout, Aliases: map[string]string{"ragContext": "context"}}
	return []command.Command{
		command.New("ai/generate", "Have a language model answer a prompt.", how, f.generate),
		command.New("ai/should-respond", "Have a language model decide whether a participant of a conversation should answer now.", how, f.shouldRespond),
		command.New("ai/model", "Say which model a step would ask, and whether its price is known, without asking it.",
			command.Options{Effect: command.Reads, Idempotent: true, Private: true, Timeout: opt.Timeout}, f.model),
	}
}

// spent is what every result of this family says about its turn.
type spent struct {
	Usage    sentinels.Usage `json:"usage" jsonschema:"what the turn cost"`
	Model    string          `json:"model"`
	Provider string          `json:"provider"`
}

func spentOn(r sentinels.Reply) spent { return spent{r.Usage, r.Model, r.Provider} }

type modelIn struct {
	Model string `json:"model,omitempty" jsonschema:"as in a step of type llm; auto if not given"`
}

type modelOut struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Priced   bool   `json:"priced" jsonschema:"its price is known, so that a budget in money can hold"`
}

// model has the errors that a step would have: without a configured model, or with an
// unknown name.
func (f family) model(ctx context.Context, _ *command.Call, in modelIn) (out modelOut, err error) {
	out.Provider, out.Model, out.Priced, err = f.models.Quote(ctx, sentinels.Turn{
		Model: in.Model, Messages: []sentinels.Message{{Role: "user", Content: "."}}, Tools: []sentinels.ToolSpec{{Name: "code/read"}},
	})
	return out, err
}
