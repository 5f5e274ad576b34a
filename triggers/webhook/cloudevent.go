package webhook

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// maxBatch bounds the events of one request: each is a fire of its own, which
// the caller waits for.
const maxBatch = 256

// A cloudEvent is what we keep of a CloudEvent 1.0. Its data is nil if it has
// none, which is not the same as null.
type cloudEvent struct {
	id, source, kind, subject string
	time                      time.Time // zero if it has none
	data                      json.RawMessage
}

// attribute sets one context attribute from its text. Extensions and the
// attributes that describe the event to others are checked and left out.
func (e *cloudEvent) attribute(name, value string) error {
	if len(value) > maxKey && (name == "id" || name == "source" || name == "type" || name == "subject") {
		return badRequest("attribute %s has %d bytes, more than %d", name, len(value), maxKey)
	}
	// What is kept is bounded: it goes into keys, records and indexes.
	switch name {
	case "id":
		e.id = value
	case "type":
		e.kind = value
	case "source":
		// Kept as it is written: it is compared, never called.
		if _, err := url.Parse(value); err != nil {
			return badRequest("attribute source is no reference")
		}
		e.source = value
	case "specversion":
		if value != "1.0" {
			return badRequest("attribute specversion is not 1.0")
		}
	case "time":
		at, err := time.Parse(time.RFC3339Nano, value)
		if err != nil || at.Year() < 1 || at.Year() > 9999 {
			return badRequest("attribute time is no time such as 2026-01-02T15:04:05Z")
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
			return badRequest("an attribute has a name other than of a-z and 0-9")
		}
	}
	return nil
}

// complete reports attributes that are missing.
func (e *cloudEvent) complete(seen map[string]bool) error {
	for _, name := range []string{"specversion", "id", "source", "type"} {
		if !seen[name] {
			return badRequest("attribute %s is missing", name)
		}
	}
	for name, value := range map[string]string{"id": e.id, "source": e.source, "type": e.kind} {
		if value == "" || !utf8.ValidString(value) {
			return badRequest("attribute %s is empty or no text", name)
		}
	}
	return nil
}

// isAttribute reports whether s can be the name of an attribute. The format
// recommends at most 20 characters, which not everybody keeps to.
func isAttribute(s string) bool {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// textOnly are the attributes that the specification knows; extensions may be
// numbers and booleans too.
var textOnly = []string{"specversion", "id", "source", "type", "time", "subject", "dataschema", "datacontenttype"}

// decodeEvent reads an event in structured mode. Attributes come in any order,
// so the data is made when all are known: its type may stand behind it.
func decodeEvent(body []byte) (cloudEvent, error) {
	var e cloudEvent
	if !utf8.Valid(body) {
		return e, badRequest("the body is not UTF-8")
	}
	body, err := compact(body) // from here on it is valid JSON
	if err != nil {
		return e, err
	}
	members, err := membersOf(body)
	if err != nil {
		return e, err
	}
	seen := map[string]bool{}
	var data, encoded json.RawMessage
	var written string
	for _, m := range members {
		if seen[m.name] {
			return e, badRequest("an attribute stands there twice")
		}
		seen[m.name] = true
		switch m.name {
		case "data":
			data = m.value
			continue
		case "data_base64":
			encoded = m.value
			continue
		}
		text, ok := scalar(m.value)
		if !ok {
			return e, badRequest("an attribute is no text, number or boolean")
		}
		if string(m.value) == "null" { // as if it were not there
			seen[m.name] = false
			continue
		}
		if own := slices.Contains(textOnly, m.name); own && m.value[0] != '"' {
			return e, badRequest("attribute %s is no text", m.name)
		}
		if err := e.attribute(m.name, text); err != nil {
			return e, err
		}
		if m.name == "datacontenttype" {
			written = text
		}
	}
	if err := e.complete(seen); err != nil {
		return e, err
	}
	e.data, err = structuredData(data, encoded, written)
	return e, err
}

// structuredData is the data of a structured event: a JSON value, or the content
// of another type as text or base64.
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
			return nil, badRequest("data_base64 is no text")
		}
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, badRequest("data_base64 is no base64")
		}
		if m.name == "" {
			m.name = "application/octet-stream" // of bytes nothing is guessed
		}
		return content(raw, m)
	case data == nil || m.name == "" || m.json():
		return data, nil
	}
	var text string
	if json.Unmarshal(data, &text) != nil {
		return data, nil // a value of its own, whatever its type is called
	}
	return content([]byte(text), m)
}

// decodeBatch reads the events of a batch; one that is wrong refuses all, or the
// sender, who gets one answer, could not know which to send again.
func decodeBatch(body []byte) ([]cloudEvent, error) {
	body, err := compact(body)
	if err != nil {
		return nil, err
	}
	var list []json.RawMessage
	if body[0] != '[' || json.Unmarshal(body, &list) != nil {
		return nil, badRequest("the batch is no array")
	}
	if len(list) > maxBatch {
		return nil, abi.New(abi.Limit, fmt.Sprintf("the batch has %d events, more than %d", len(list), maxBatch))
	}
	out := make([]cloudEvent, len(list))
	for i, raw := range list {
		if out[i], err = decodeEvent(raw); err != nil {
			return nil, badRequest("event %d of the batch: %s", i, err)
		}
	}
	return out, nil
}

// A member is one of an object, its value as it is written.
type member struct {
	name  string
	value json.RawMessage
}

// membersOf returns the members of an object of valid JSON, in order and also
// those that stand there twice, which a map would hide.
func membersOf(body []byte) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return nil, badRequest("the event is no object")
	}
	var out []member
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, badRequest("the event is broken")
		}
		name, _ := key.(string)
		m := member{name: name}
		if err := d.Decode(&m.value); err != nil {
			return nil, badRequest("the event is broken")
		}
		out = append(out, m)
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
