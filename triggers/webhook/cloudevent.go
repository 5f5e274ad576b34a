package webhook

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// maxBatch limits the events of one request. The sender waits for the outcomes of
// all of them.
const maxBatch = 256

// A cloudEvent is the used part of a CloudEvent 1.0. Its data is nil if it has
// none, which differs from null.
type cloudEvent struct {
	id, source, kind, subject string
	time                      time.Time // zero if it has none
	data                      json.RawMessage
}

// attribute sets one context attribute from its text. It checks and drops
// extensions, dataschema and datacontenttype.
func (e *cloudEvent) attribute(name, value string) error {
	// These are stored in keys, records and indexes.
	if len(value) > maxKey && (name == "id" || name == "source" || name == "type" || name == "subject") {
		return badRequest("attribute %s has %d bytes, more than %d", name, len(value), maxKey)
	}
	switch name {
	case "id":
		e.id = value
	case "type":
		e.kind = value
	case "source":
		// It is stored unchanged, because it is only compared.
		if _, err := url.Parse(value); err != nil {
			return badRequest("invalid attribute source: want a URI reference")
		}
		e.source = value
	case "specversion":
		if value != "1.0" {
			return badRequest("invalid attribute specversion: want 1.0")
		}
	case "time":
		at, err := time.Parse(time.RFC3339Nano, value)
		if err != nil || at.Year() < 1 || at.Year() > 9999 {
			return badRequest("invalid attribute time: want one such as 2026-01-02T15:04:05Z")
		}
		e.time = at.UTC()
	case "subject", "dataschema", "datacontenttype":
		if value == "" {
			return badRequest("attribute %s is empty", name)
		}
		if name == "subject" {
			e.subject = value
		}
	default:
		if !isAttribute(name) {
			return badRequest("invalid name of an attribute: want a-z and 0-9")
		}
	}
	return nil
}

// complete checks the required attributes.
func (e *cloudEvent) complete(seen map[string]bool) error {
	for _, name := range []string{"specversion", "id", "source", "type"} {
		if !seen[name] {
			return badRequest("missing attribute %s", name)
		}
	}
	for name, value := range map[string]string{"id": e.id, "source": e.source, "type": e.kind} {
		if value == "" || !utf8.ValidString(value) {
			return badRequest("attribute %s is empty or not UTF-8", name)
		}
	}
	return nil
}

// isAttribute reports whether s can be the name of an attribute. The specification
// only recommends at most 20 characters, so longer names are accepted.
func isAttribute(s string) bool {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// textOnly are the attributes that must be strings. Extensions may also be numbers
// and booleans.
var textOnly = []string{"specversion", "id", "source", "type", "time", "subject", "dataschema", "datacontenttype"}

// decodeEvent reads an event in structured mode. Members have any order, so the
// data is decoded last: its type may follow it.
func decodeEvent(body []byte) (cloudEvent, error) {
	var e cloudEvent
	body, err := compact(body) // removes white space in the data
	if err != nil {
		return e, err
	}
	members, err := strictjson.Members(body, bodyLimits)
	if err != nil {
		return e, badRequest("the event is not an object")
	}
	seen := map[string]bool{}
	var data, encoded json.RawMessage
	var written string
	for _, m := range members {
		seen[m.Key] = true
		switch m.Key {
		case "data":
			data = m.Value
			continue
		case "data_base64":
			encoded = m.Value
			continue
		}
		text, ok := scalar(m.Value)
		if !ok {
			return e, badRequest("an attribute is not a string, number or boolean")
		}
		if string(m.Value) == "null" { // null means absent
			seen[m.Key] = false
			continue
		}
		if slices.Contains(textOnly, m.Key) && m.Value[0] != '"' {
			return e, badRequest("attribute %s is not a string", m.Key)
		}
		if err := e.attribute(m.Key, text); err != nil {
			return e, err
		}
		if m.Key == "datacontenttype" {
			written = text
		}
	}
	if err := e.complete(seen); err != nil {
		return e, err
	}
	e.data, err = structuredData(data, encoded, written)
	return e, err
}

// structuredData returns the data of an event in structured mode: a JSON value, or
// content of another type as text or base64.
func structuredData(data, encoded json.RawMessage, written string) (json.RawMessage, error) {
	m, err := parseMedia(written)
	if err != nil {
		return nil, err
	}
	switch {
	case data != nil && encoded != nil:
		return nil, badRequest("the event has both data and data_base64")
	case encoded != nil:
		var text string
		if json.Unmarshal(encoded, &text) != nil {
			return nil, badRequest("data_base64 is not a string")
		}
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, badRequest("data_base64 is not valid base64")
		}
		if m.name == "" {
			m.name = "application/octet-stream" // no guess from the bytes
		}
		return content(raw, m)
	case data == nil || m.name == "" || m.json():
		return data, nil
	}
	var text string
	if json.Unmarshal(data, &text) != nil {
		return data, nil // a JSON value, whatever its media type is
	}
	return content([]byte(text), m)
}

// decodeBatch reads the events of a batch. One bad event refuses the whole batch:
// the sender gets one response, and could not know which events to send again.
func decodeBatch(body []byte) ([]cloudEvent, error) {
	body, err := compact(body)
	if err != nil {
		return nil, err
	}
	var list []json.RawMessage
	if body[0] != '[' || json.Unmarshal(body, &list) != nil {
		return nil, badRequest("the batch is not an array")
	}
	if len(list) > maxBatch {
		return nil, abi.New(abi.Limit, fmt.Sprintf("batch has %d events, more than %d", len(list), maxBatch))
	}
	out := make([]cloudEvent, len(list))
	for i, raw := range list {
		if out[i], err = decodeEvent(raw); err != nil {
			return nil, badRequest("event %d of the batch: %s", i, err)
		}
	}
	return out, nil
}

// scalar returns the text of a JSON string, number, boolean or null.
func scalar(value json.RawMessage) (string, bool) {
	if value[0] == '{' || value[0] == '[' {
		return "", false
	}
	var text string
	if value[0] == '"' {
		return text, json.Unmarshal(value, &text) == nil
	}
	return string(value), true
}
