package host

import "github.com/sentinel-runtime/sentinel/host/notify"

// openNotify makes the service of messages for people as it is configured.
func (h *Host) openNotify() (*notify.Service, error) {
	c := h.settings.Notify
	opt := notify.Options{Webhook: c.Webhook, Notifier: (*pluginNotifiers)(h), Hide: h.redactor.String}
	if c.Secret != "" {
		h.secrets.Learn(c.Secret) // a text may have it before the first request does
		opt.Secret = func() (string, error) { return h.secrets.Value(c.Secret) }
	}
	return notify.New(opt)
}
