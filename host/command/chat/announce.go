package chat

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// EventName is the event of a new message. Its data is [Posted].
const EventName = "chat:message"

// maxPosted is how much of a message an event carries, in bytes; the rest is to
// be read from the room.
const maxPosted = 16 << 10

// Posted is what the event of a message carries.
type Posted struct {
	ID        string `json:"id"`
	Room      string `json:"room"`
	From      string `json:"from"`
	Text      string `json:"text"`
	Truncated bool   `json:"truncated,omitempty"`
}

// announce emits the event of a message in the transaction that stores it, so
// that sentinels react to every stored message and to no other. If a later attempt
// sends the message with another text, it is not announced again.
func (f family) announce(ctx context.Context, call *command.Call, id string, b body) error {
	posted := Posted{ID: id, Room: b.Room, From: b.From, Text: b.Text}
	if len(posted.Text) > maxPosted {
		posted.Text, posted.Truncated = textcut.Cut(posted.Text, maxPosted), true
	}
	data, err := json.Marshal(posted)
	if err != nil {
		return err
	}
	e := sentinels.Event{ID: "chat-" + id, Name: EventName, Source: call.Who(), Data: data}
	if call.Run != "" {
		e.Source = "sentinel/" + string(call.Sentinel)
		e.Hops, e.Path = 1, []string{string(call.Sentinel)}
	}
	if run := cmp.Or(call.Run, call.Sender); run != "" && f.opt.Chain != nil {
		if hops, path := f.opt.Chain(run); hops > 0 {
			e.Hops, e.Path = hops, path
		}
	}
	return call.Records.Emit(ctx, e)
}
