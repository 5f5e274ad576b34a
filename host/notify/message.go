package notify

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Severity is how much a message matters.
type Severity string

// The severities.
const (
	Info    Severity = "info"
	Warning Severity = "warning"
	Error   Severity = "error"
)

// Bounds of a message, in bytes. A title and a text that are longer are cut, because they
// quote tickets and programs; the others are the error bad_fields.
const (
	MaxTitle = 200
	MaxText  = 8 << 10
	MaxField = 2000
)

// A Message is for people.
type Message struct {
	Title    string   `json:"title"` // one line
	Text     string   `json:"text"`  // plain text
	Severity Severity `json:"severity"`
	Event    string   `json:"event,omitempty"` // that the message is about, such as ticket:update
	Ticket   string   `json:"ticket,omitempty"`
	Run      string   `json:"run,omitempty"`
	URL      string   `json:"url,omitempty"` // where to read more: http or https
	// By is the agent or model that sends it, which its title begins with, so that every target shows
	// it; "" for the host and for persons with the steps of their definitions.
	By string `json:"by,omitempty"`
	// Owner is the agent or model for whose part of the rate it counts, "" for all others.
	Owner string `json:"-"`
}

// A Notifier sends messages to places that it has names for, such as mail or a chat.
// Notify is called concurrently, also for one name. Its ctx has a deadline. key is equal for
// all repetitions of a message and has no characters but letters, digits and _. An error
// that wraps an [abi.Error] decides by it whether the message is repeated: unavailable and
// timeout are, others are not; an error without a code is repeated.
type Notifier interface {
	Names() []string
	Notify(ctx context.Context, name string, m Message, key string) error
}

// prepare checks a message, and makes it safe to show: without secrets, without characters
// that a terminal obeys, and within the bounds.
func (m Message) prepare(hide func(string) string) (Message, error) {
	if strings.TrimSpace(m.Title) == "" {
		return m, bad("title", "is empty")
	}
	switch m.Severity {
	case "":
		m.Severity = Info
	case Info, Warning, Error:
	default:
		return m, bad("severity", "unknown severity %.40q: want info, warning or error", string(m.Severity))
	}
	if u, err := url.Parse(m.URL); m.URL != "" && (err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http") {
		return m, bad("url", "want http://HOST/PATH or https://HOST/PATH, without credentials")
	}
	for _, f := range []struct {
		name  string
		value *string
	}{{"event", &m.Event}, {"ticket", &m.Ticket}, {"run", &m.Run}, {"url", &m.URL}, {"by", &m.By}} {
		if len(*f.value) > MaxField {
			return m, bad(f.name, "has %d bytes, at most %d", len(*f.value), MaxField)
		}
		*f.value = string(termtext.Line(hide(*f.value)))
	}
	// Secrets are removed before anything is cut: a half of one would not be found.
	if m.By != "" {
		m.Title = textcut.Mark(m.By, MaxTitle/2) + ": " + m.Title
	}
	m.Title = textcut.Mark(string(termtext.Line(hide(m.Title))), MaxTitle)
	m.Text = shorten(string(termtext.Block(hide(m.Text), "")), MaxText)
	return m, nil
}

func bad(field, format string, args ...any) error {
	return &abi.Error{Code: abi.BadFields, Permanent: true, Field: field, Message: "notify: " + field + ": " + fmt.Sprintf(format, args...)}
}
