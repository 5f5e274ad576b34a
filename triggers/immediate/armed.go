package immediate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// armed is one immediate trigger. Only the goroutine of Run uses it.
type armed struct {
	env      triggers.Env
	occasion On        // "" once it has fired
	at       time.Time // when it was armed
}

// state is what is kept over restarts: that the trigger has fired, and for which
// revision.
type state struct {
	Revision int `json:"revision"`
}

// data is the data of the event.
type data struct {
	Occasion On  `json:"occasion"`
	Revision int `json:"revision"` // of the definition that the trigger was armed from
}

// Run fires if there is an occasion, and waits until ctx ends. A fire that was
// not decided ends it with the error; run again it fires the same again.
func (a *armed) Run(ctx context.Context, fire triggers.Func) error {
	if a.occasion != "" {
		f, err := a.fire()
		if err != nil {
			return err
		}
		if _, err := fire(ctx, f); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("fire at %s: %w", a.occasion, err)
		}
		a.occasion = ""
	}
	<-ctx.Done()
	return nil
}

// fire makes the fire of the occasion. Its key is the same if a crash has it
// made again; a start after a crash is a start of its own.
func (a *armed) fire() (triggers.Fire, error) {
	// A trigger is created once; the other occasions need to be told apart.
	key := string(a.occasion)
	switch a.occasion {
	case OnEdit:
		key = fmt.Sprintf("%s/%d", a.occasion, a.env.Revision)
	case OnStart:
		key = fmt.Sprintf("%s/%s", a.occasion, a.at.Format(time.RFC3339Nano))
	}
	kept, err := json.Marshal(state{a.env.Revision})
	if err != nil {
		return triggers.Fire{}, err
	}
	body, err := json.Marshal(data{a.occasion, a.env.Revision})
	if err != nil {
		return triggers.Fire{}, err
	}
	id := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%s", a.env.Sentinel, a.env.Name, a.env.Since.UTC().Format(time.RFC3339Nano), key))
	return triggers.Fire{
		Key: key, At: a.at, State: kept,
		Event: &sentinels.Event{
			ID: hex.EncodeToString(id[:16]), Name: "immediate", Source: "/sentinels/" + string(a.env.Sentinel), Time: a.at, Data: body,
		},
	}, nil
}

var _ triggers.Armed = (*armed)(nil)
