package notify_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/sentinel-runtime/sentinel/host/notify"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// question is a message with characters that the services would format.
var question = notify.Message{
	Title: "Ticket T_1 waits: <fix> & *go*", Text: "It is blocked: see [a](b) | c\n\nsentinel ticket show T_1\nsentinel decide T_1 release|accept", Severity: notify.Warning,
	Event: "ticket:update", Ticket: "T_1", URL: "https://example.org/?a=1&b=x|y",
}

// Each format is the body that its service takes, and no text in it is obeyed.
func TestFormats(t *testing.T) {
	for _, c := range []struct{ format, template, path, want string }{
		{notify.Slack, "", "/T0/secret-path", `{"blocks":[` +
			`{"text":{"emoji":false,"text":"Ticket T_1 waits: <fix> & *go*","type":"plain_text"},"type":"header"},` +
			`{"text":{"emoji":false,"text":"It is blocked: see [a](b) | c\n\nsentinel ticket show T_1\nsentinel decide T_1 release|accept","type":"plain_text"},"type":"section"},` +
			`{"text":{"text":"<https://example.org/?a=1&amp;b=x%7Cy>","type":"mrkdwn"},"type":"section"}],` +
			`"text":"Ticket T_1 waits: &lt;fix&gt; &amp; *go*"}`},
		{notify.Discord, "", "/T0/secret-path", `{"allowed_mentions":{"parse":[]},"embeds":[{"color":15844367,` +
			`"description":"It is blocked: see \\[a\\](b) \\| c\n\nsentinel ticket show T\\_1\nsentinel decide T\\_1 release\\|accept",` +
			`"title":"Ticket T\\_1 waits: \\<fix\\> & \\*go\\*","url":"https://example.org/?a=1&b=x|y"}]}`},
		{notify.Teams, "", "/T0/secret-path", `{"attachments":[{"content":{"$schema":"http://adaptivecards.io/schemas/adaptive-card.json",` +
			`"actions":[{"title":"Open","type":"Action.OpenUrl","url":"https://example.org/?a=1&b=x|y"}],` +
			`"body":[{"color":"Warning","size":"Medium","text":"Ticket T\\_1 waits: \\<fix\\> & \\*go\\*","type":"TextBlock","weight":"Bolder","wrap":true},` +
			`{"text":"It is blocked: see \\[a\\](b) \\| c\n\n\n\nsentinel ticket show T\\_1\n\nsentinel decide T\\_1 release\\|accept","type":"TextBlock","wrap":true}],` +
			`"type":"AdaptiveCard","version":"1.4"},"contentType":"application/vnd.microsoft.card.adaptive","contentUrl":null}],"type":"message"}`},
		{notify.Ntfy, "", "/T0/", `{"click":"https://example.org/?a=1&b=x|y",` +
			`"message":"It is blocked: see [a](b) | c\n\nsentinel ticket show T_1\nsentinel decide T_1 release|accept",` +
			`"priority":4,"title":"Ticket T_1 waits: <fix> & *go*","topic":"secret-path"}`},
		{notify.Template, `{"msg": {{json .Title}}, "run": {{json .Run}}{{if eq .Severity "error"}}, "page": true{{end}}}`, "/T0/secret-path",
			`{"msg": "Ticket T_1 waits: \u003cfix\u003e \u0026 *go*", "run": ""}`},
	} {
		v := newReceiver(t)
		var path string
		v.answer = func(w http.ResponseWriter, r *http.Request) {
			path = r.URL.Path
			w.WriteHeader(http.StatusNoContent)
		}
		if _, err := service(t, notify.Options{Webhook: v.url, Format: c.format, Template: c.template}).Send(t.Context(), question, "k"); err != nil {
			t.Fatal(err)
		}
		if got := string(v.got[0].body); got != c.want || path != c.path || v.got[0].header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %s\n%s\nwant %s\n%s", c.format, path, got, c.path, c.want)
		}
	}
}

// A text that is longer than its service takes is cut with a mark, and the lines to type stay.
func TestFormatsAreBounded(t *testing.T) {
	const typed = "\n\nsentinel status run/1"
	for format, most := range map[string]int{notify.Slack: 3000, notify.Discord: 4096, notify.Teams: 7000, notify.Ntfy: 4096, notify.Standard: notify.MaxText} {
		for _, filler := range []string{"a", "_", "é", "😀", "&", "a\n"} {
			v := newReceiver(t)
			m := notify.Message{Title: strings.Repeat(filler, 300), Text: strings.Repeat(filler, 9000) + typed}
			if _, err := service(t, notify.Options{Webhook: v.url, Format: format}).Send(t.Context(), m, "k"); err != nil {
				t.Fatal(err)
			}
			longest := longestText(t, v.got[0].body)
			end := typed
			if format == notify.Teams {
				end = "\n\n\n\nsentinel status run/1"
			}
			if n := len(utf16.Encode([]rune(longest))); n > most || n < most/8 || !strings.HasSuffix(longest, "..."+end) {
				t.Errorf("%s of %q: %d units, at most %d: ...%.60q", format, filler, n, most, longest[max(0, len(longest)-60):])
			}
		}
	}
}

// longestText returns the longest text in a JSON value.
func longestText(t *testing.T, body []byte) (longest string) {
	t.Helper()
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		t.Fatal(err)
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			if len(v) > len(longest) {
				longest = v
			}
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for _, item := range v {
				walk(item)
			}
		}
	}
	walk(value)
	return longest
}

// A template that would not make JSON of every message is refused before one is sent.
func TestTemplateIsChecked(t *testing.T) {
	for _, text := range []string{"", `{"msg": "{{.Title}}"}`, `{"msg": {{.Title}}}`, `{{json .Nothing}}`, `{{json`, `{"a": {{json .Title}}} {}`, `{{call .Title}}`} {
		_, err := notify.New(notify.Options{Format: notify.Template, Template: text})
		if abi.CodeOf(err) != abi.BadFields || !strings.Contains(fmt.Sprint(err), "notify.template") || notify.CheckTemplate(text) == nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := notify.CheckTemplate(`{"all": {{json .}}, "level": {{if eq .Severity "info"}}1{{else}}2{{end}}}`); err != nil {
		t.Error(err)
	}
	if _, err := notify.New(notify.Options{Format: notify.Ntfy, Webhook: "https://ntfy.example.org"}); abi.CodeOf(err) != abi.BadFields {
		t.Errorf("ntfy without a topic: %v", err)
	}
}

// Each format says which agent or model sends a message.
func TestFormatsNameTheSender(t *testing.T) {
	for _, format := range notify.Formats() {
		v := newReceiver(t)
		m := notify.Message{Title: "Deploy waits for your approval", By: "agent:ci"}
		if _, err := service(t, notify.Options{Webhook: v.url, Format: format, Template: `{"msg": {{json .Title}}}`}).Send(t.Context(), m, "k"); err != nil {
			t.Fatal(err)
		}
		if got := string(v.got[0].body); !strings.Contains(got, "agent:ci: Deploy waits") {
			t.Errorf("%s: %s", format, got)
		}
	}
}
