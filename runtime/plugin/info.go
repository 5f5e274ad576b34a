package plugin

import (
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

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
	Roles       []Role               `json:"roles,omitempty"` // of its step types
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

// A Role is a role of a step type of a plugin, clause A9 of sdk/ABI.md.
type Role struct {
	As   abi.Role           `json:"as"`
	Name string             `json:"name,omitempty"` // of a command
	Type sentinels.StepType `json:"type"`
	// Active reports whether the plugin is live and allowed to provide the role. Otherwise
	// the step type is only a step.
	Active bool `json:"active"`
}

// Provided is an active role, with what its users need to know of the step type.
type Provided struct {
	As       abi.Role
	Name     string // of a command
	Type     sentinels.StepType
	Plugin   string
	Digest   string // of the plugin's module
	Summary  string
	Fields   json.RawMessage // JSON Schema
	Output   json.RawMessage // JSON Schema, nil if it is not described
	Aliases  map[string]string
	ReadOnly bool
	Commands []string // names and patterns of commands that the plugin may call
}
