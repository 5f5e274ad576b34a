package livefeed

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// request is a client's message. Unknown members are errors, so that a misspelt
// one is not ignored.
type request struct {
	Subscribe   []string `json:"subscribe,omitempty"`
	Unsubscribe []string `json:"unsubscribe,omitempty"`
	// Type is set in the messages of rooms: subscribe or unsubscribe with Room, or ping.
	Type string `json:"type,omitempty"`
	Room string `json:"room,omitempty"`
}

// parseRequest parses a client's message. Its error is an *abi.Error.
func parseRequest(message []byte) (request, error) {
	var r request
	if err := strictjson.Decode(message, &r, strictjson.Limits{}); err != nil {
		return request{}, abi.New(abi.BadFields, fmt.Sprintf("read message: %v", err))
	}
	if r.Type != "" {
		return r, r.checkRoom()
	}
	if len(r.Subscribe)+len(r.Unsubscribe) == 0 {
		return request{}, abi.New(abi.BadFields, "read message: neither subscribe nor unsubscribe")
	}
	// A topic is looked for among all that are subscribed to, with a lock that runs need.
	if len(r.Subscribe) > MaxTopics || len(r.Unsubscribe) > MaxTopics {
		return request{}, tooManyTopics()
	}
	for _, topic := range r.Subscribe {
		if err := CheckTopic(topic); err != nil {
			return request{}, err
		}
	}
	return r, nil
}

// state is sent to a client at the start and after it has changed its topics.
type state struct {
	Cursor  string   `json:"cursor"`
	Version string   `json:"version,omitempty"`
	Topics  []string `json:"topics"`
}

// appendEntry appends the message of an entry. The body was encoded once for all
// readers.
func appendEntry(b []byte, e Entry) []byte {
	if e.Gap != nil {
		b = append(b, `{"gap":`...)
		b = appendJSON(b, struct {
			*Gap
			Cursor string `json:"cursor"`
		}{e.Gap, e.Cursor.String()})
		return append(b, '}')
	}
	b = append(b, '{')
	if isRoom(e.Topic) {
		b = appendRoom(b, e)
	}
	b = append(b, `"cursor":"`...)
	b = e.Cursor.append(b)
	b = append(b, `","topic":`...)
	b = appendJSON(b, e.Topic)
	if len(e.Also) > 0 {
		b = append(b, `,"also":`...)
		b = appendJSON(b, e.Also)
	}
	b = append(b, `,"kind":`...)
	b = appendJSON(b, e.Kind)
	b = append(b, `,"time":"`...)
	b = e.Time.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","event":`...)
	b = append(b, e.Body()...)
	return append(b, '}')
}

// appendCursor appends a message that has only the position of the stream.
func appendCursor(b []byte, c Cursor) []byte {
	b = append(b, `{"cursor":"`...)
	b = c.append(b)
	return append(b, `"}`...)
}

func appendJSON(b []byte, v any) []byte {
	j, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and plain structs
	}
	return append(b, j...)
}
