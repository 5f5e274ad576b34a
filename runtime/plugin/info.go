package plugin

import "github.com/sentinel-runtime/sentinel/sentinels"

// A State says whether a plugin's step types can be used.
type State string

// The states of a plugin.
const (
	Live    State = "live"
	Waiting State = "waiting" // for the operator: see [Grants]
	Refused State = "refused" // it cannot be loaded
)

// An Info describes a plugin that was loaded, or the reason why it was not.
type Info struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	Source  string `json:"source"`
	Digest  string `json:"digest,omitempty"`
	State   State  `json:"state"`
	// Types are the step types that it provides, or would if it did not wait.
	Types       []sentinels.StepType `json:"types,omitempty"`
	Trusted     bool                 `json:"trusted"`
	Stateless   bool                 `json:"stateless,omitempty"` // so it says; see [Grant.Reuse]
	Permissions []Permission         `json:"permissions,omitempty"`
	Grant       *Grant               `json:"grant,omitempty"`   // what a live one is allowed; nil for a trusted one, that is all it asks for
	Problem     string               `json:"problem,omitempty"` // why it is not live
	Refused     string               `json:"refused,omitempty"` // it is live, and this is why a newer version of it is not
	Next        *Version             `json:"next,omitempty"`    // the newer version, if it waits
}

// A Version is a version of a plugin that waits while an older one serves.
type Version struct {
	Version     string       `json:"version,omitempty"`
	Digest      string       `json:"digest"`
	Permissions []Permission `json:"permissions,omitempty"`
	Missing     []Permission `json:"missing,omitempty"` // of what it asks for, what the one that serves is not allowed
	Problem     string       `json:"problem"`           // why it waits
}

// A Permission is one permission a plugin asks for, with its reason.
type Permission struct {
	Use    string   `json:"use"`
	Names  []string `json:"names,omitempty"`
	Reason string   `json:"reason"`
}
