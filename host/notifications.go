package host

import (
	"io"
	"os"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/notify"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// openNotify makes the service of messages for people as it is configured.
func (h *Host) openNotify() (*notify.Service, error) {
	c := h.settings.Notify
	opt := notify.Options{
		Webhook: c.Webhook, Format: c.Format, Template: c.Template, Command: c.Command, Shell: h.notifyShell, Rate: c.Rate, Timeout: c.Timeout.Std(),
		Email:    notify.Email{Server: c.Email.Server, From: c.Email.From, To: c.Email.To, User: c.Email.User, Password: h.notifySecret(c.Email.Password), TLS: c.Email.TLS},
		Secret:   h.notifySecret(c.Secret),
		Notifier: (*pluginNotifiers)(h), Hide: h.redactor.String, Logger: h.opt.Logger,
	}
	return notify.New(opt)
}

// notifySecret reads a secret for each message. It is nil without a name.
func (h *Host) notifySecret(name string) func() (string, error) {
	if name == "" {
		return nil
	}
	h.secrets.Learn(name) // a text may have it before the first message is sent
	return func() (string, error) { return h.secrets.Value(name) }
}

// notifyShell starts the command of messages below a supervisor, which ends all that it starts.
func (h *Host) notifyShell(line string, env []string, stdin io.Reader, output *os.File) (notify.Process, error) {
	cmd := h.shells.Line(line)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = append(cmd.Env, env...), stdin, output, output
	return h.shells.StartTree(cmd)
}

// notifyWanted reports whether people are notified of a kind of message about a sentinel, and the
// setting that says so: that of the stored definition if it has one, else that of the configuration.
func (h *Host) notifyWanted(kind string, of sentinels.ID) (wanted bool, setting string) {
	outer, _, _ := strings.Cut(string(of), "@") // an inline definition has what its parent has
	if def := h.child(sentinels.ID(outer)); outer != "" && def != nil && def.Notify != nil {
		return slices.Contains(def.Notify, kind), "notify of the definition of " + outer
	}
	return slices.Contains(h.settings.Notify.On, kind), "notify.on"
}
