package host

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
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

// notifyWanted reports whether people are notified of a kind of message about a sentinel and one of its runs, and the
// setting that says so: that of the definition if it has one, else that of the configuration.
func (h *Host) notifyWanted(kind string, of sentinels.ID, run sentinels.RunID) (wanted bool, setting string) {
	outer, _, _ := strings.Cut(string(of), "@") // an inline definition has what its parent has
	def := h.draft(sentinels.ID(outer), run)
	if def == nil {
		def = h.child(sentinels.ID(outer))
	}
	if outer != "" && def != nil && def.Notify != nil {
		return slices.Contains(def.Notify, kind), "notify of the definition of " + outer
	}
	return slices.Contains(h.settings.Notify.On, kind), "notify.on"
}

// unnotified returns why no message about a run of d reaches people: none of the places for them is configured, or nothing that is
// stored or in the project's folder sends to one.
func (h *Host) unnotified(d *sentinels.Definition) (why, hint string) {
	if has(sentinels.Encode(d), sendsMessages) {
		return "", "" // it does so itself
	}
	c := h.settings.Notify
	if c.Webhook == "" && c.Email.Server == "" && c.Command == "" {
		return "none of notify.webhook, notify.email and notify.command is set", "`sentinel help notifications` describes them"
	}
	if h.rt == nil {
		return "", "" // the store is being opened
	}
	stored, err := h.rt.Definitions()
	if err != nil {
		return "", "" // reported elsewhere
	}
	for _, s := range stored {
		if has(s.Definition, sendsMessages) {
			return "", ""
		}
	}
	for _, ext := range sentinels.FileExtensions() {
		files, _ := filepath.Glob(filepath.Join(h.dir, "sentinels", "*"+ext))
		for _, file := range files {
			if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, []byte(`"notify/send"`)) {
				return "", ""
			}
		}
	}
	return "no sentinel here calls notify/send", "write the one that does: sentinel init --template notify"
}

// draft returns the definition with this id that a person has started without storing it, as a file is run, if the run is of
// its tree; else nil. That of an agent or a model does not count: it could keep from people what they should know.
func (h *Host) draft(id sentinels.ID, run sentinels.RunID) *sentinels.Definition {
	if run == "" || h.rt == nil {
		return nil
	}
	info, err := h.rt.Status(run)
	if err == nil && info.Root != run {
		info, err = h.rt.Status(info.Root)
	}
	if err != nil || info.Sentinel != id || info.Revision != 0 || info.By != "" {
		return nil
	}
	used, err := h.rt.RunDefinition(info.ID)
	if err != nil {
		return nil
	}
	return used.Definition
}
