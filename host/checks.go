package host

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/plugin/egress"
	"github.com/sentinel-runtime/sentinel/host/validation"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers/standard"
)

// checks are what this host knows of the names in definitions. With a cassette, models are
// those that were recorded.
func (h *Host) checks() runtime.Checks {
	c := validation.Checker{
		Commands: func() *command.Registry { return h.registry }, Stored: h.stored, Near: h.near, Child: h.child, Classifier: (*outputClassifiers)(h).Known,
		Secret: h.secretProblem, Withheld: h.withheld, Request: h.requestProblem, Unnotified: h.unnotified,
		EventData: append(standard.Set(), h.opt.Kinds...).EventData,
	}
	if h.models.live != nil && !h.opt.AnyModel {
		c.Model = h.models.live.Check
	}
	return c
}

// requestProblem returns why requests to a host are refused, nil if they may not be: only hosts that
// the operator lists are of this machine or its networks.
func (h *Host) requestProblem(address string) *sentinels.Problem {
	host, unlisted := egress.Unlisted(h.settings.HTTP.Private, address)
	if !unlisted {
		return nil
	}
	hint := fmt.Sprintf("add it to the setting http.private: SENTINEL_HTTP_PRIVATE=%s", host)
	if egress.Never(address) {
		hint = "addresses of one link, and those that serve the metadata of clouds, are never allowed"
	}
	return &sentinels.Problem{
		Kind: sentinels.KindAbsent, Message: fmt.Sprintf("%s is this machine or in a private network, where requests do not go", host),
		Hint: hint, Denied: true,
	}
}

// child returns the definition of a stored sentinel, nil if there is none that is valid.
func (h *Host) child(id sentinels.ID) *sentinels.Definition {
	if h.rt == nil {
		return nil // the store is being opened
	}
	stored, err := h.rt.Definition(id)
	if err != nil {
		return nil
	}
	def, err := h.rt.Decoded(stored)
	if err != nil {
		return nil
	}
	return def
}

// stored reports whether a sentinel is in the store or has a file in the project's folder.
func (h *Host) stored(id sentinels.ID) bool {
	if h.rt == nil {
		return true // the store is being opened
	}
	if _, err := h.rt.Definition(id); abi.CodeOf(err) != abi.NotFound {
		return true // what cannot be read is reported elsewhere
	}
	for _, ext := range sentinels.FileExtensions() {
		if !id.Valid() {
			break // its file would be elsewhere
		}
		if _, err := os.Stat(filepath.Join(h.dir, "sentinels", string(id)+ext)); err == nil {
			return true
		}
	}
	return false
}

// near returns the ids of stored sentinels that are similar to one that is not stored.
func (h *Host) near(id sentinels.ID) []string {
	all, err := h.rt.Definitions()
	if err != nil {
		return nil // a suggestion is not worth an error
	}
	ids := make([]string, len(all))
	for i, s := range all {
		ids[i] = string(s.ID)
	}
	return sentinels.Suggest(string(id), ids)
}
