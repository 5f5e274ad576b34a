package webhook

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"mime"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/triggers"
)

// The media types that mean more than a kind of content.
const (
	mediaEvent = "application/cloudevents+json"
	mediaBatch = "application/cloudevents-batch+json"
	mediaForm  = "application/x-www-form-urlencoded"
)

// media is a media type without its parameters, in lower case, "" for none. It
// goes into events as it was written.
type media struct{ name, written string }

func (m media) is(name string) bool { return m.name == name }

// json reports whether content of this type is JSON, by its name alone: "+json"
// is how types that are written in JSON end.
func (m media) json() bool {
	_, sub, _ := strings.Cut(m.name, "/")
	return sub == "json" || strings.HasSuffix(sub, "+json") || m.name == "text/json"
}

// mediaOf is the type of a request's body.
func mediaOf(r triggers.Request) (media, error) {
	text, err := header(r, "Content-Type")
	if err != nil {
		return media{}, err
	}
	return parseMedia(text)
}

// parseMedia reads a media type. Parameters that make no sense are let pass:
// services send some, and none of them changes what we do.
func parseMedia(text string) (media, error) {
	if text == "" {
		return media{}, nil
	}
	name, _, err := mime.ParseMediaType(text)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) || len(text) > maxKey || !utf8.ValidString(text) {
		return media{}, badRequest("the content type is none")
	}
	return media{name, text}, nil
}

// content makes the data of an event of bytes, nil of none: JSON as it is, a
// form as an object, anything else as {"text"} where it is UTF-8 and as
// {"base64"} where it is not, both with their "contentType". Without a type what
// reads as JSON is JSON.
func content(body []byte, m media) (json.RawMessage, error) {
	if len(body) == 0 {
		return nil, nil
	}
	// Variables of a run are JSON, whose texts are Unicode: other bytes would be
	// replaced on the way, without a word.
	text := utf8.Valid(body)
	switch {
	case m.json():
		// It says what it is, so if it is not the sender is told.
		if !text {
			return nil, badRequest("the body is not UTF-8")
		}
		return compact(body)
	case m.name == "" && text && json.Valid(body):
		return compact(body)
	case m.is(mediaForm):
		values, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, badRequest("the body is no form")
		}
		return object(values), nil
	}
	data := map[string]string{}
	if m.written != "" {
		data["contentType"] = m.written
	}
	if text {
		data["text"] = string(body)
	} else {
		data["base64"] = base64.StdEncoding.EncodeToString(body)
	}
	return mustJSON(data), nil
}

// compact returns one JSON value without white space. The error says where, and
// nothing of the text.
func compact(body []byte) (json.RawMessage, error) {
	var raw json.RawMessage
	err := json.Unmarshal(body, &raw) // Compact does not say where
	if syntax := new(json.SyntaxError); errors.As(err, &syntax) {
		return nil, badRequest("the JSON is broken at byte %d", syntax.Offset)
	}
	var out bytes.Buffer
	if err != nil || json.Compact(&out, raw) != nil {
		return nil, badRequest("the JSON is broken")
	}
	return out.Bytes(), nil
}
