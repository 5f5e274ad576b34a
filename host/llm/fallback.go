package llm

import (
	"slices"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// transient reports whether a turn has ended by a rate limit, an overload or an outage. A broken tool
// call is none of these: the same model often makes a better one. Neither is an account without credit,
// because only the operator can end that, and should know of it.
func transient(e *abi.Error) bool {
	return (e.Code == abi.Unavailable || e.Code == abi.Timeout) && !e.Permanent && e.Hint != brokenCallHint
}

// fallback returns the configured model that takes the place of one whose turn has failed, "" if there
// is none. In place of a model of the list comes one behind it, so that the list ends. A model whose
// provider is not configured is passed over.
func (m *Models) fallback(failed Choice) string {
	list := m.config.Fallback
	if i := slices.IndexFunc(list, func(ref string) bool {
		c, err := m.named(ref)
		return err == nil && c.Provider == failed.Provider && (c.Model == "" || c.Model == failed.Model)
	}); i >= 0 {
		list = list[i+1:]
	}
	for _, ref := range list {
		if _, err := m.named(ref); err == nil {
			return ref
		}
	}
	return ""
}
