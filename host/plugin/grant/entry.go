package grant

import (
	"slices"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/plugin"
)

// format is the number of the file's format.
const format = 1

// keepEarlier is how many earlier versions keep their grants, for the steps that
// were parked with them.
const keepEarlier = 16

// An Entry is the operator's decision about one plugin.
type Entry struct {
	Name    string    `json:"-"` // of the plugin; the entry's key
	Digest  string    `json:"digest"`
	Version string    `json:"version,omitempty"`
	File    string    `json:"file,omitempty"` // in the folder of plugins
	By      string    `json:"by,omitempty"`   // who decided
	At      time.Time `json:"at"`             // and when
	// Denied denies the plugin everything.
	Denied bool `json:"denied,omitempty"`
	// Pin holds the grant to these very bytes. Without it a changed file of the
	// same name that asks for no more keeps the grant.
	Pin     bool         `json:"pin,omitempty"`
	Carried *Carried     `json:"carried,omitempty"`
	Grant   plugin.Grant `json:"grant"`
	Earlier []Earlier    `json:"earlier,omitempty"` // the newest first
	Seal    string       `json:"seal,omitempty"`
}

// Carried is set if the grant was carried over to a changed file.
type Carried struct {
	From string    `json:"from"` // digest that was allowed by a person
	At   time.Time `json:"at"`
}

// Earlier is a version before the one that is allowed now. Its steps under way
// and parked go on with what they were allowed.
type Earlier struct {
	Digest  string       `json:"digest"`
	Version string       `json:"version,omitempty"`
	Grant   plugin.Grant `json:"grant"`
}

// grantOf returns what a digest is allowed.
func (e Entry) grantOf(digest string) (plugin.Grant, bool) {
	if e.Digest == digest {
		return e.Grant, true
	}
	for _, old := range e.Earlier {
		if old.Digest == digest {
			return old.Grant, true
		}
	}
	return plugin.Grant{}, false
}

// after makes e the entry that follows before: what was allowed becomes earlier.
// A refusal forgets all of it.
func (e Entry) after(before Entry) Entry {
	e.Earlier = nil
	if e.Denied || before.Denied || before.Digest == "" {
		return e
	}
	older := append([]Earlier{{before.Digest, before.Version, before.Grant}}, before.Earlier...)
	for _, old := range older {
		if old.Digest != e.Digest && len(e.Earlier) < keepEarlier {
			e.Earlier = append(e.Earlier, old)
		}
	}
	return e
}

// part returns what of a grant a version asks for, when it asks for less than
// the one before it.
func part(g plugin.Grant, permissions []plugin.Permission) plugin.Grant {
	g.Allow = slices.DeleteFunc(slices.Clone(g.Allow), func(a plugin.Permission) bool {
		return !slices.ContainsFunc(permissions, func(b plugin.Permission) bool { return a.Use == b.Use })
	})
	return g
}
