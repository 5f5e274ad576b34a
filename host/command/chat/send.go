package chat

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// maxText is the longest message, in bytes.
const maxText = 256 << 10

// maxMetadata limits what is kept with a message, in bytes.
const maxMetadata = 16 << 10

type sendIn struct {
	Room    string          `json:"room" jsonschema:"room to post in, such as general"`
	Message json.RawMessage `json:"message" jsonschema:"what to say: text, or any JSON; of an object with a text field, such as a model's reply, that text is posted"`
	From    string          `json:"from,omitempty" jsonschema:"name of the speaker; of a caller that is not a person it stands behind the caller's name; the caller if not given"`
}

// sendOut is the same for every attempt of one call.
type sendOut struct {
	ID     string    `json:"id" jsonschema:"id of the message; ids of a room sort in its order"`
	Room   string    `json:"room"`
	SentAt time.Time `json:"sentAt"`
}

// body is a message as it is stored.
type body struct {
	Room     string          `json:"room"`
	From     string          `json:"from"`
	Text     string          `json:"text"`
	Data     json.RawMessage `json:"data,omitempty"` // the message, when it is JSON without a text
	Metadata json.RawMessage `json:"metadata,omitempty"`
	By       command.By      `json:"by"`
	Sentinel sentinels.ID    `json:"sentinel,omitempty"`
	Run      sentinels.RunID `json:"run,omitempty"`
}

// counter is a room. It grows with every message and never shrinks, so that a
// deleted message leaves its number unused.
type counter struct {
	Count uint64 `json:"count"`
}

// receipt leads from a call to its message. It is kept as long as the message:
// a run can be resumed weeks later.
type receipt struct {
	Message string `json:"message"` // id
}

// shortIn is what recipes of the original system give: a conversation is in one room there.
type shortIn struct {
	Room     string          `json:"room,omitempty" jsonschema:"room to post in, general if not given"`
	Message  json.RawMessage `json:"message" jsonschema:"what to say, as for collaboration/chat/send"`
	From     string          `json:"from,omitempty" jsonschema:"name of the speaker, as for collaboration/chat/send"`
	Metadata json.RawMessage `json:"metadata,omitempty" jsonschema:"what a program knows of the message, such as how it was made; kept with it"`
}

// sendShort is send under the name that recipes have.
func (f family) sendShort(ctx context.Context, call *command.Call, in shortIn) (sendOut, error) {
	return f.post(ctx, call, sendIn{cmp.Or(in.Room, "general"), in.Message, in.From}, in.Metadata)
}

func (f family) send(ctx context.Context, call *command.Call, in sendIn) (sendOut, error) {
	return f.post(ctx, call, in, nil)
}

// post posts once for a key. A later attempt of the same call finds its
// message; if it has something else to say, it says it in place.
func (f family) post(ctx context.Context, call *command.Call, in sendIn, metadata json.RawMessage) (sendOut, error) {
	if err := checkCall(call, in.Room); err != nil {
		return sendOut{}, err
	}
	b := body{Room: in.Room, From: call.Named(in.From), By: call.By, Sentinel: call.Sentinel, Run: call.Run, Metadata: metadata}
	if len(metadata) > maxMetadata {
		return sendOut{}, &abi.Error{Code: abi.Limit, Permanent: true, Field: "metadata", Message: fmt.Sprintf("send: the metadata has %d bytes, the limit is %d", len(metadata), maxMetadata)}
	}
	var err error
	if b.Text, b.Data, err = say(in.Message); err != nil {
		return sendOut{}, err
	}
	if len(in.From) > 128 || !utf8.ValidString(b.From) {
		return sendOut{}, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "from", Message: "send: field \"from\": longer than 128 bytes"}
	}
	text, err := json.Marshal(b)
	if err != nil {
		return sendOut{}, err
	}
	old, found, err := sentBefore(ctx, call, in.Room)
	if err != nil {
		return sendOut{}, err
	}
	if found {
		if !bytes.Equal(old.Data, text) {
			if _, err = call.Records.Put(ctx, Collection, old.ID, text, old.Revision); err != nil {
				return sendOut{}, err
			}
		}
		return sendOut{old.ID, in.Room, old.CreatedAt}, nil
	}
	id, err := nextID(ctx, call.Records, in.Room)
	if err != nil {
		return sendOut{}, err
	}
	doc, err := call.Records.Put(ctx, Collection, id, text, 0)
	if err == nil && call.Key != "" {
		err = remember(ctx, call, id)
	}
	if err == nil {
		err = f.announce(ctx, call, id, b)
	}
	return sendOut{doc.ID, in.Room, doc.CreatedAt}, err
}

// say turns a message into the text people read, and what the text leaves out.
func say(message json.RawMessage) (text string, data json.RawMessage, err error) {
	var reply struct {
		Text *string `json:"text"`
	}
	switch {
	case json.Unmarshal(message, &text) == nil && string(message) != "null":
	case strictjson.DecodeOpen(message, &reply, strictjson.Unlimited()) == nil && reply.Text != nil:
		text = *reply.Text
	case string(message) == "null":
	default:
		var compact bytes.Buffer
		if err := json.Compact(&compact, message); err != nil {
			return "", nil, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "message", Message: "send: " + err.Error()}
		}
		text, data = compact.String(), message
	}
	if text == "" {
		return "", nil, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "message", Message: "send: the message is empty"}
	}
	if len(text) > maxText {
		return "", nil, &abi.Error{
			Code: abi.Limit, Permanent: true, Field: "message",
			Message: fmt.Sprintf("send: the message has %d bytes, the limit is %d", len(text), maxText),
		}
	}
	return text, data, nil
}

// nextID counts a room's messages. Transactions run one after another, so
// numbers have no gaps and no twins; the revision guards against a store that
// does otherwise.
func nextID(ctx context.Context, records command.Records, room string) (string, error) {
	var c counter
	doc, err := records.Get(ctx, rooms, room)
	switch {
	case err == nil:
		if err := json.Unmarshal(doc.Data, &c); err != nil {
			return "", fmt.Errorf("read counter of room %q: %w", room, err)
		}
	case abi.CodeOf(err) != abi.NotFound:
		return "", err
	}
	c.Count++
	text, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	if _, err := records.Put(ctx, rooms, room, text, doc.Revision); err != nil {
		return "", err
	}
	return messageID(room, c.Count), nil
}

// receiptID is a digest, as keys may hold bytes that ids may not.
func receiptID(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}

// remember writes the receipt in the same transaction as the message.
func remember(ctx context.Context, call *command.Call, id string) error {
	text, err := json.Marshal(receipt{id})
	if err != nil {
		return err
	}
	_, err = call.Records.Put(ctx, sent, receiptID(call.Key), text, sentinels.AnyRevision)
	return err
}

// sentBefore finds what an earlier attempt of this call sent to the room,
// unless it was deleted since.
func sentBefore(ctx context.Context, call *command.Call, room string) (doc sentinels.Document, found bool, err error) {
	if call.Key == "" {
		return doc, false, nil
	}
	if doc, err = call.Records.Get(ctx, sent, receiptID(call.Key)); err == nil {
		var r receipt
		if err := json.Unmarshal(doc.Data, &r); err != nil {
			return doc, false, fmt.Errorf("read receipt %q: %w", doc.ID, err)
		}
		if _, here := number(room, r.Message); !here {
			return doc, false, nil
		}
		doc, err = call.Records.Get(ctx, Collection, r.Message)
	}
	if abi.CodeOf(err) == abi.NotFound {
		return doc, false, nil
	}
	return doc, err == nil, err
}
