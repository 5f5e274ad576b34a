package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

type historyIn struct {
	Room   string `json:"room" jsonschema:"room to read"`
	Limit  int    `json:"limit,omitempty" jsonschema:"how many messages at most, 50 if not given" minimum:"1" maximum:"500"`
	Before string `json:"before,omitempty" jsonschema:"the next of an earlier answer: read what came before that message"`
}

type historyOut struct {
	Room     string    `json:"room"`
	Messages []Message `json:"messages" jsonschema:"oldest first"`
	Next     string    `json:"next,omitempty" jsonschema:"give it as before to read older messages; absent at the first one"`
	Text     string    `json:"text" jsonschema:"the messages as a person reads them"`
}

// A Message is one message of a room.
type Message struct {
	ID       string          `json:"id"`
	From     string          `json:"from"`
	By       command.By      `json:"-"` // who the speaker is
	Text     string          `json:"text"`
	Data     json.RawMessage `json:"data,omitempty" jsonschema:"the message, when it was JSON without a text"`
	Metadata json.RawMessage `json:"metadata,omitempty" jsonschema:"what chat/send was given with it"`
	Sentinel string          `json:"sentinel,omitempty" jsonschema:"sentinel that sent it"`
	Run      string          `json:"run,omitempty"`
	SentAt   time.Time       `json:"sentAt"`
	Edited   bool            `json:"edited,omitempty" jsonschema:"a later attempt of its step changed it"`
}

// maxHistory bounds the text of one answer, in bytes; one message is always
// there if there is one.
const maxHistory = 1 << 20

// History is for the host's own use, such as building context. It returns up to limit messages of a room, the newest last. An unknown
// room has none.
func History(ctx context.Context, records command.Records, room string, limit int) ([]Message, error) {
	count, err := size(ctx, records, room)
	if err != nil {
		return nil, err
	}
	messages, _, err := back(ctx, records, room, count, limit)
	return messages, err
}

// history pages backwards: what people want first is the latest. The text has
// one line a message, for prompts.
func history(ctx context.Context, call *command.Call, in historyIn) (historyOut, error) {
	out := historyOut{Room: in.Room}
	if err := checkCall(call, in.Room); err != nil {
		return out, err
	}
	if in.Limit == 0 {
		in.Limit = 50
	}
	newest, err := size(ctx, call.Records, in.Room)
	if err != nil {
		return out, err
	}
	if in.Before != "" {
		n, ok := number(in.Room, in.Before)
		if !ok {
			return out, &abi.Error{
				Code: abi.BadFields, Permanent: true, Field: "before",
				Message: fmt.Sprintf("history: %.80q is no message of room %q", in.Before, in.Room),
			}
		}
		newest = min(newest, n-1)
	}
	messages, more, err := back(ctx, call.Records, in.Room, newest, in.Limit)
	if err != nil {
		return out, err
	}
	out.Messages = messages
	if more {
		out.Next = messages[0].ID
	}
	var text strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&text, "%s: %s\n", m.From, m.Text)
	}
	out.Text = text.String()
	return out, nil
}

// size is the number of the newest message, 0 in an unknown room.
func size(ctx context.Context, records command.Records, room string) (uint64, error) {
	doc, err := records.Get(ctx, rooms, room)
	if abi.CodeOf(err) == abi.NotFound {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var c counter
	if err := json.Unmarshal(doc.Data, &c); err != nil {
		return 0, fmt.Errorf("read counter of room %q: %w", room, err)
	}
	return c.Count, nil
}

// back reads limit messages from number n downwards, one by one: as rooms
// share a collection, a scan would also pass over other rooms. more says that
// there are older ones.
func back(ctx context.Context, records command.Records, room string, n uint64, limit int) (messages []Message, more bool, err error) {
	messages = []Message{}
	total := 0
	for ; n > 0; n-- {
		doc, err := records.Get(ctx, Collection, messageID(room, n))
		if abi.CodeOf(err) == abi.NotFound {
			continue // deleted
		}
		if err != nil {
			return nil, false, err
		}
		var b body
		if err := json.Unmarshal(doc.Data, &b); err != nil {
			return nil, false, fmt.Errorf("read message %q: %w", doc.ID, err)
		}
		total += len(b.Text) + len(b.Data)
		if len(messages) == limit || total > maxHistory && len(messages) > 0 {
			more = true
			break
		}
		messages = append(messages, Message{
			ID: doc.ID, From: b.From, By: b.By, Text: b.Text, Data: b.Data, Metadata: b.Metadata, Sentinel: string(b.Sentinel), Run: string(b.Run),
			SentAt: doc.CreatedAt, Edited: doc.Revision > 1,
		})
	}
	slices.Reverse(messages)
	return messages, more, nil
}
