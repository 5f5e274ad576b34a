package host

import (
	"context"
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/host/notify"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/role"
)

// pluginNotifiers send messages by step types of plugins, clause A9.5 of sdk/ABI.md. A
// notifier is named by its step type.
type pluginNotifiers Host

var _ notify.Notifier = (*pluginNotifiers)(nil)

// Names returns the notifiers that are active now.
func (h *pluginNotifiers) Names() []string {
	var names []string
	for _, p := range h.rt.Provided(abi.RoleNotifier) {
		names = append(names, string(p.Type))
	}
	return names
}

// Notify executes a notifier as a run, below the run that sends the message if there is one.
// A host call that a crash interrupted is made again: a message twice is better than none.
func (h *pluginNotifiers) Notify(ctx context.Context, name string, m notify.Message, key string) error {
	fields, err := json.Marshal(role.Notice{
		Title: m.Title, Text: m.Text, Severity: string(m.Severity), Key: key, Event: m.Event, Ticket: m.Ticket, Run: m.Run, URL: m.URL,
	})
	if err != nil {
		return err
	}
	_, err = (*Host)(h).callRole(ctx, abi.RoleNotifier, name, fields, "notify "+name+" "+key)
	return err
}
