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
	occasion On        // what to fire for, "" for nothing or once it has fired
	at       time.Time // when it was armed
}

// state is what the trigger stores when it fires.
type state struct {
	Revision int `json:"revision"` // that it has fired for
}

// data is the data of the event, clause T3.4.
type data struct {
	Occasion On  `json:"occasion"`
	Revision int `json:"revision"` // of the definition that the trigger was armed from
}

// Run fires if there is an occasion, and waits until ctx ends. If the firing is
// not decided, Run returns the error; called again, it repeats the firing.
func (a *armed) Run(ctx context.Context, fire triggers.FireFunc) error {
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

// fire returns the firing of the occasion. Its key is the same when a crash
// repeats it, except that a start after a crash counts as another start.
func (a *armed) fire() (triggers.Firing, error) {
	// A trigger is created once; the other occasions recur.
	key := string(a.occasion)
	switch a.occasion {
	case OnEdit:
		key = fmt.Sprintf("%s/%d", a.occasion, a.env.Revision)
	case OnStart:
		key = fmt.Sprintf("%s/%s", a.occasion, a.at.Format(time.RFC3339Nano))
	}
	saved, err := json.Marshal(state{a.env.Revision})
	if err != nil {
		return triggers.Firing{}, err
	}
	body, err := json.Marshal(data{a.occasion, a.env.Revision})
	if err != nil {
		return triggers.Firing{}, err
	}
	id := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%s", a.env.Sentinel, a.env.Name, a.env.Since.UTC().Format(time.RFC3339Nano), key))
	return triggers.Firing{
		Key: key, At: a.at, State: saved, Saved: a.occasion != OnStart,
		Event: &sentinels.Event{
			ID: hex.EncodeToString(id[:16]), Name: "immediate", Source: "/sentinels/" + string(a.env.Sentinel), Time: a.at, Data: body,
		},
	}, nil
}

var _ triggers.Armed = (*armed)(nil)
