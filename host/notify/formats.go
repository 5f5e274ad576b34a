package notify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"strings"
	"text/template"
	"time"
	"unicode/utf16"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Formats of the body that the webhook gets.
const (
	Standard = "standard" // of Standard Webhooks
	Slack    = "slack"
	Discord  = "discord"
	Teams    = "teams" // an Adaptive Card, as webhooks of workflows take it
	Ntfy     = "ntfy"
	Template = "template" // of the operator
)

// Formats returns the formats of the body that the webhook gets.
func Formats() []string { return []string{Standard, Slack, Discord, Teams, Ntfy, Template} }

// Bounds of the services, in UTF-16 units, which each service counts or counts fewer of. Titles fit
// in all of them but that of Slack.
const (
	slackTitle  = 150
	slackText   = 3000
	discordText = 4096
	teamsText   = 7000 // the whole card has at most 28 KB in UTF-16
	ntfyText    = 4096 // bytes: more becomes an attachment
)

// A request is what is sent to the address of the webhook.
type request struct {
	url  string
	body []byte
}

// request builds the request of a message in the configured format.
func (s *Service) request(m Message, now time.Time) (request, error) {
	r := request{url: s.opt.Webhook}
	var body any
	switch s.opt.Format {
	case Slack:
		body = slackBody(m)
	case Discord:
		body = discordBody(m)
	case Teams:
		body = teamsBody(m)
	case Ntfy:
		var topic string
		r.url, topic = ntfyTopic(r.url) // checked by New
		body = ntfyBody(m, topic)
	case Template:
		var err error
		r.body, err = executed(s.template, m)
		return r, err
	default:
		d := delivery{Type: m.Event, Timestamp: now, Data: m}
		if d.Type == "" {
			d.Type = "notification"
		}
		body = d
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(s.opt.Format == Standard) // else the texts of Slack's escapes are doubly escaped, which takes space
	if err := e.Encode(body); err != nil {
		return r, err
	}
	r.body = bytes.TrimSuffix(out.Bytes(), []byte("\n"))
	return r, nil
}

// object is an object of JSON whose members a service defines.
type object = map[string]any

// slackBody is plain text in blocks, in which Slack obeys nothing. The member text is what a
// notification shows.
func slackBody(m Message) object {
	blocks := []object{{"type": "header", "text": object{"type": "plain_text", "text": fit(m.Title, slackTitle, same), "emoji": false}}}
	if m.Text != "" {
		blocks = append(blocks, object{"type": "section", "text": object{"type": "plain_text", "text": fit(m.Text, slackText, same), "emoji": false}})
	}
	if m.URL != "" {
		blocks = append(blocks, object{"type": "section", "text": object{"type": "mrkdwn", "text": "<" + slackEscapes.Replace(m.URL) + ">"}})
	}
	return object{"text": slackEscapes.Replace(m.Title), "blocks": blocks}
}

// slackEscapes escapes what begins links and mentions of Slack, and what ends an address.
var slackEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "|", "%7C")

func discordBody(m Message) object {
	embed := object{"title": fit(m.Title, MaxTitle, markdown), "description": fit(m.Text, discordText, markdown), "color": map[Severity]int{Info: 0x3498db, Warning: 0xf1c40f, Error: 0xe74c3c}[m.Severity]}
	if m.URL != "" {
		embed["url"] = m.URL
	}
	return object{"embeds": []object{embed}, "allowed_mentions": object{"parse": []string{}}}
}

func teamsBody(m Message) object {
	lines := func(text string) string { return strings.ReplaceAll(markdown(text), "\n", "\n\n") } // one newline ends no line
	card := object{
		"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4",
		"body": []object{
			{"type": "TextBlock", "text": markdown(m.Title), "weight": "Bolder", "size": "Medium", "wrap": true, "color": map[Severity]string{Info: "Default", Warning: "Warning", Error: "Attention"}[m.Severity]},
			{"type": "TextBlock", "text": fit(m.Text, teamsText, lines), "wrap": true},
		},
	}
	if m.URL != "" {
		card["actions"] = []object{{"type": "Action.OpenUrl", "title": "Open", "url": m.URL}}
	}
	return object{"type": "message", "attachments": []object{{"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": nil, "content": card}}}
}

func ntfyBody(m Message, topic string) object {
	body := object{"topic": topic, "title": m.Title, "message": shorten(m.Text, ntfyText), "priority": map[Severity]int{Info: 3, Warning: 4, Error: 5}[m.Severity]}
	if m.URL != "" {
		body["click"] = m.URL
	}
	return body
}

// ntfyTopic splits the address of a topic into that of its server, which takes messages as JSON,
// and the topic. The topic is empty if the address has none.
func ntfyTopic(address string) (server, topic string) {
	u, err := url.Parse(address)
	if err != nil {
		return "", ""
	}
	dir, topic := path.Split(strings.TrimSuffix(u.Path, "/"))
	u.Path, u.RawPath = dir, ""
	return u.String(), topic
}

func noTopic() error {
	return &abi.Error{Code: abi.BadFields, Permanent: true, Field: "notify.webhook", Message: "notify.webhook: want https://HOST/TOPIC for the format ntfy"}
}

// markdown escapes what Discord and Teams would format.
func markdown(text string) string { return markdownEscapes.Replace(text) }

var markdownEscapes = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "~", `\~`, "|", `\|`, "<", `\<`, ">", `\>`, "[", `\[`, "]", `\]`, "#", `\#`)

func same(text string) string { return text }

// fit escapes a text and cuts it so that the result has at most n UTF-16 units.
func fit(text string, n int, escape func(string) string) string {
	for most := len(text); ; {
		short := shorten(text, most)
		out := escape(short)
		over := len(utf16.Encode([]rune(out))) - n
		if over <= 0 {
			return out
		}
		most = min(most, len(short)) - max(over/4, 1) // an escape makes no character longer than 4 bytes
	}
}

// shorten cuts a text with a mark to at most n bytes. The last paragraph stays, if it takes at
// most half of them: it has the lines to type.
func shorten(text string, n int) string {
	if len(text) <= n {
		return text
	}
	at := strings.LastIndex(text, "\n\n")
	if at < 0 || len(text)-at > n/2 {
		return textcut.Mark(text, n)
	}
	return textcut.Mark(text[:at], n-(len(text)-at)) + text[at:]
}

// parseTemplate parses a template of bodies, and checks it with a message whose texts have
// what JSON escapes.
func parseTemplate(text string) (*template.Template, error) {
	t, err := template.New("notify.template").Funcs(template.FuncMap{"json": func(v any) (string, error) {
		out, err := json.Marshal(v)
		return string(out), err
	}}).Parse(text)
	if err != nil {
		return nil, badTemplate(err)
	}
	const value = "a \"quoted\" text\nof two lines, \\ and <b>"
	if _, err := executed(t, Message{Title: value, Text: value, Severity: Warning, Event: value, Ticket: value, Run: value, URL: value, By: value}); err != nil {
		return nil, err
	}
	return t, nil
}

// CheckTemplate returns the error bad_fields for a template of bodies that does not make JSON.
func CheckTemplate(text string) error {
	_, err := parseTemplate(text)
	return err
}

// executed returns the body that a template makes of a message.
func executed(t *template.Template, m Message) ([]byte, error) {
	var out bytes.Buffer
	if err := t.Execute(&out, m); err != nil {
		return nil, badTemplate(err)
	}
	var v any
	if err := json.Unmarshal(out.Bytes(), &v); err != nil {
		return nil, badTemplate(fmt.Errorf("the result is not JSON: %w", err))
	}
	return out.Bytes(), nil
}

func badTemplate(err error) error {
	return &abi.Error{Code: abi.BadFields, Permanent: true, Field: "notify.template", Message: "notify.template: " + err.Error(),
		Hint: `write values as {{json .Title}}, without quotes around them; there are .Title, .Text, .Severity, .Event, .Ticket, .Run, .URL and .By`}
}
