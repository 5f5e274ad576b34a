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

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// The media types that are handled specially, besides JSON.
const (
	mediaEvent = "application/cloudevents+json"
	mediaBatch = "application/cloudevents-batch+json"
	mediaForm  = "application/x-www-form-urlencoded"
)

// media is a media type. name is in lower case and without parameters, "" for
// none; written is the original text, which events contain.
type media struct{ name, written string }

func (m media) is(name string) bool { return m.name == name }

// json reports whether the type is JSON, by its name: JSON or a suffix "+json".
func (m media) json() bool {
	_, sub, _ := strings.Cut(m.name, "/")
	return sub == "json" || strings.HasSuffix(sub, "+json") || m.name == "text/json"
}

// mediaOf returns the media type of a request's body.
func mediaOf(r triggers.Request) (media, error) {
	text, err := header(r, "Content-Type")
	if err != nil {
		return media{}, err
	}
	return parseMedia(text)
}

// parseMedia parses a media type. It ignores invalid parameters, which some
// services send.
func parseMedia(text string) (media, error) {
	if text == "" {
		return media{}, nil
	}
	name, _, err := mime.ParseMediaType(text)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) || len(text) > maxKey || !utf8.ValidString(text) {
		return media{}, badRequest("invalid content type")
	}
	return media{name, text}, nil
}

// content returns a body as the data of an event, nil for an empty body: JSON
// unchanged, a form as an object or as the JSON in its only field "payload", UTF-8 as {"text"}, other bytes as {"base64"},
// the last two with their "contentType". Without a media type, a valid JSON text
// is JSON, and the same checks apply.
func content(body []byte, m media) (json.RawMessage, error) {
	if len(body) == 0 {
		return nil, nil
	}
	// JSON strings are Unicode; encoding would silently replace other bytes.
	text := utf8.Valid(body)
	switch {
	case m.json(), m.name == "" && json.Valid(body):
		return compact(body)
	case m.is(mediaForm):
		values, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, badRequest("the body is not a valid form")
		}
		// GitHub's default: JSON in the only field of a form.
		if list := values["payload"]; len(values) == 1 && len(list) == 1 && json.Valid([]byte(list[0])) && strings.ContainsAny(list[0][:1], "{[") {
			return compact([]byte(list[0]))
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

// bodyLimits limit JSON bodies. The limit of keys is higher than for definitions:
// a push of 800 commits has 16,000 keys.
var bodyLimits = strictjson.Limits{Bytes: triggers.MaxBody, Depth: strictjson.DefaultDepth, Keys: 100_000, StringBytes: triggers.MaxBody}

// compact checks one JSON value strictly and returns it without white space. The
// error has the place, and nothing of the text (T8.8).
func compact(body []byte) (json.RawMessage, error) {
	if err := strictjson.Check(body, bodyLimits); err != nil {
		return nil, badJSON(err)
	}
	var out bytes.Buffer
	if err := json.Compact(&out, body); err != nil {
		return nil, badRequest("the body is not JSON")
	}
	return out.Bytes(), nil
}

// badJSON converts an error of package strictjson: it keeps kind and place, and
// removes keys and characters of the body.
func badJSON(err error) error {
	e := (*strictjson.Error)(nil)
	if !errors.As(err, &e) {
		return badRequest("the body is not JSON")
	}
	reason := "not JSON"
	switch {
	case e.Kind == strictjson.Duplicate:
		reason = "duplicate key"
	case e.Kind == strictjson.Value:
		reason = "number out of range"
	case e.Kind == strictjson.Limit, strings.HasPrefix(e.Reason, "text "), strings.HasPrefix(e.Reason, "the text "):
		reason = e.Reason // contains nothing of the body
	}
	return badRequest("body: line %d, column %d: %s", e.Line, e.Column, reason)
}
