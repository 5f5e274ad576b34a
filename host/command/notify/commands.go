// Package notify implements the command that sends a message to people outside of the
// host.
package notify

import (
	"context"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/notify"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Wanted reports whether people are notified of a kind of message about a sentinel and one of its runs, which are empty
// for a message about none, and the setting that says so.
type Wanted func(kind string, of sentinels.ID, run sentinels.RunID) (wanted bool, setting string)

// Commands returns the family notify/*.
func Commands(s *notify.Service, wanted Wanted) []command.Command {
	f := family{s, wanted}
	return []command.Command{
		command.New("notify/send", "Send a message to the configured webhook, mail server and command, and to the notifiers of plugins.",
			command.Options{Effect: command.Changes, Idempotent: true, Private: true, Waits: command.Always, Timeout: 2 * time.Minute, Aliases: map[string]string{"ticket_id": "ticket", "ticketId": "ticket"}}, f.send),
	}
}

type family struct {
	s      *notify.Service
	wanted Wanted
}

type sendIn struct {
	Title    string `json:"title" jsonschema:"one line; at most 200 bytes are sent"`
	Text     string `json:"text" jsonschema:"at most 8 KiB are sent"`
	Severity string `json:"severity,omitempty" enum:"info,warning,error" jsonschema:"info if not given"`
	Event    string `json:"event,omitempty" jsonschema:"event that it is about, such as ticket:update"`
	Ticket   string `json:"ticket,omitempty" jsonschema:"id of the ticket that it is about"`
	Run      string `json:"run,omitempty" jsonschema:"id of the run that it is about"`
	URL      string `json:"url,omitempty" jsonschema:"where to read more"`
	Kind     string `json:"kind,omitempty" enum:"failed,timed_out,waiting,quarantined,interrupted,skipped,recovered,overdue,paused,tickets" jsonschema:"kind of the message: one that notify.on, or notify of the sentinel's definition, leaves out is not sent"`
	Sentinel string `json:"sentinel,omitempty" jsonschema:"id of the sentinel that a message with a kind is about"`
}

type sendOut struct {
	Sent []notify.Sent `json:"sent" jsonschema:"what became of it at each target"`
	Note string        `json:"note,omitempty" jsonschema:"why nothing was sent"`
}

func (f family) send(ctx context.Context, call *command.Call, in sendIn) (sendOut, error) {
	if in.Kind != "" {
		if wanted, setting := f.wanted(in.Kind, sentinels.ID(in.Sentinel), sentinels.RunID(in.Run)); !wanted {
			return sendOut{Sent: []notify.Sent{}, Note: fmt.Sprintf("not sent: %s has no %s", setting, in.Kind)}, nil
		}
	}
	m := notify.Message{
		Title: in.Title, Text: in.Text, Severity: notify.Severity(in.Severity), Event: in.Event, Ticket: in.Ticket, Run: in.Run, URL: in.URL, Owner: call.Share(),
	}
	if m.Owner != "" {
		m.By = call.Who()
	}
	sent, err := f.s.Send(ctx, m, call.Key)
	out := sendOut{Sent: append([]notify.Sent{}, sent...)}
	if len(sent) == 0 {
		out.Note = "no target: set notify.webhook, notify.email or notify.command, or install a plugin that notifies"
	}
	return out, err
}
