// Package notify implements the command that sends a message to people outside of the
// host.
package notify

import (
	"context"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/notify"
)

// Commands returns the family notify/*.
func Commands(s *notify.Service) []command.Command {
	f := family{s}
	return []command.Command{
		command.New("notify/send", "Send a message to the configured webhook, mail server and command, and to the notifiers of plugins.",
			command.Options{Effect: command.Changes, Idempotent: true, Private: true, Timeout: 2 * time.Minute, Aliases: map[string]string{"ticket_id": "ticket", "ticketId": "ticket"}}, f.send),
	}
}

type family struct{ s *notify.Service }

type sendIn struct {
	Title    string `json:"title" jsonschema:"one line; at most 200 bytes are sent"`
	Text     string `json:"text" jsonschema:"at most 8 KiB are sent"`
	Severity string `json:"severity,omitempty" enum:"info,warning,error" jsonschema:"info if not given"`
	Event    string `json:"event,omitempty" jsonschema:"event that it is about, such as ticket:update"`
	Ticket   string `json:"ticket,omitempty" jsonschema:"id of the ticket that it is about"`
	Run      string `json:"run,omitempty" jsonschema:"id of the run that it is about"`
	URL      string `json:"url,omitempty" jsonschema:"where to read more"`
}

type sendOut struct {
	Sent []notify.Sent `json:"sent" jsonschema:"what became of it at each target"`
	Note string        `json:"note,omitempty" jsonschema:"why nothing was sent"`
}

func (f family) send(ctx context.Context, call *command.Call, in sendIn) (sendOut, error) {
	sent, err := f.s.Send(ctx, notify.Message{
		Title: in.Title, Text: in.Text, Severity: notify.Severity(in.Severity), Event: in.Event, Ticket: in.Ticket, Run: in.Run, URL: in.URL,
	}, call.Key)
	out := sendOut{Sent: append([]notify.Sent{}, sent...)}
	if len(sent) == 0 {
		out.Note = "no target: set notify.webhook, notify.email or notify.command, or install a plugin that notifies"
	}
	return out, err
}
