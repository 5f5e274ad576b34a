package host

import (
	"github.com/sentinel-runtime/sentinel/host/command/sentinel"
	"github.com/sentinel-runtime/sentinel/runtime"
)

// Listening says where the API of this process listens, for the addresses of webhooks.
func (h *Host) Listening(url string) { h.baseURL.Store(&url) }

// BaseURL returns the URL of [Host.Listening], "" before it.
func (h *Host) BaseURL() string {
	if url := h.baseURL.Load(); url != nil {
		return *url
	}
	return ""
}

// Webhooks returns the triggers that fire on requests, with their addresses. With an error about some
// definitions it returns those of the others.
func (h *Host) Webhooks() ([]runtime.TriggerInfo, error) {
	all, err := h.rt.Triggers("")
	sentinel.SetHookURLs(all, h.BaseURL())
	var list []runtime.TriggerInfo
	for _, t := range all {
		if t.Requests != nil {
			list = append(list, t)
		}
	}
	return list, err
}
