package event

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

type emitIn struct {
	Event string          `json:"event" jsonschema:"name of the event, parts between colons, such as git:push"`
	Data  json.RawMessage `json:"data,omitempty" jsonschema:"what the event carries, any JSON; sentinels read it as $event"`
}

type emitOut struct {
	ID    string    `json:"id"`
	Event string    `json:"event"`
	Time  time.Time `json:"time"`
}

// emit gives the event an id made of the call's key, so that every repetition
// of the call is the same event. The log keeps no event twice; a repetition
// after the first one has left the log reaches subscribers again, who can tell
// by the id.
func (f family) emit(ctx context.Context, call *command.Call, in emitIn) (emitOut, error) {
	if problem, hint := sentinels.CheckEventName(in.Event); problem != "" {
		return emitOut{}, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "event", Message: "emit: " + problem, Hint: hint}
	}
	e := sentinels.Event{Name: in.Event, Source: source(call), Data: in.Data}
	e.Hops, e.Path = f.chain(call)
	if call.Key != "" {
		sum := sha256.Sum256([]byte(call.Key))
		e.ID = hex.EncodeToString(sum[:16])
	}
	e, err := f.opt.Log.Emit(ctx, e)
	return emitOut{e.ID, e.Name, e.Time}, err
}

// source is written as the engine writes it for its emit step. It is never empty: the events of
// the host itself have none.
func source(call *command.Call) string {
	if call.Sentinel != "" {
		return "sentinel/" + string(call.Sentinel)
	}
	return call.Who()
}

// chain counts the run that emits, also by a process of a step; a person's event begins a
// new chain.
func (f family) chain(call *command.Call) (int, []string) {
	if run := cmp.Or(call.Run, call.Sender); run != "" && f.opt.Chain != nil {
		if hops, path := f.opt.Chain(run); hops > 0 {
			return hops, path
		}
	}
	if call.Run == "" {
		return 0, nil
	}
	return 1, []string{string(call.Sentinel)}
}
