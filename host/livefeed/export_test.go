package livefeed

import "encoding/json"

// Indexes counts the indexes that a feed keeps.
func Indexes(f *Feed) int {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return len(f.indexes)
}

// ParseRequest opens the parser of clients' messages to the fuzzer.
func ParseRequest(message []byte) (subscribe, unsubscribe []string, err error) {
	r, err := parseRequest(message)
	return r.Subscribe, r.Unsubscribe, err
}

// AppendEntry opens the writer of messages.
var AppendEntry = appendEntry

// WithBody returns e with a body.
func (e Entry) WithBody(body json.RawMessage) Entry {
	e.payload = &payload{body: body}
	return e
}
