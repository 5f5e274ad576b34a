package runtime

import (
	"slices"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// PluginState says whether a plugin's step types can be used.
type PluginState string

// The states of a plugin.
const (
	PluginLive    PluginState = "live"
	PluginWaiting PluginState = "waiting" // for the operator: see [Options.Grants]
	PluginRefused PluginState = "refused" // it cannot be loaded
)

// PluginInfo describes a loaded plugin or says why it is not.
type PluginInfo struct {
	Name    string      `json:"name"`
	Version string      `json:"version,omitempty"`
	Source  string      `json:"source"`
	Digest  string      `json:"digest,omitempty"`
	State   PluginState `json:"state"`
	// Types are the step types that it provides, or would if it did not wait.
	Types     []sentinels.StepType `json:"types,omitempty"`
	Trusted   bool                 `json:"trusted"`
	Stateless bool                 `json:"stateless,omitempty"` // so it says; see [Grant.Reuse]
	Asks      []PluginAsk          `json:"asks,omitempty"`
	Grant     *Grant               `json:"grant,omitempty"`   // what a live one is allowed; nil for a trusted one, that is all it asks for
	Problem   string               `json:"problem,omitempty"` // why it is not live
	Refused   string               `json:"refused,omitempty"` // it is live, and this is why a newer version of it is not
	Next      *PluginVersion       `json:"next,omitempty"`    // the newer version, if it waits
}

// A PluginVersion is a version of a plugin that waits while an older one serves.
type PluginVersion struct {
	Version string      `json:"version,omitempty"`
	Digest  string      `json:"digest"`
	Asks    []PluginAsk `json:"asks,omitempty"`
	Missing []PluginAsk `json:"missing,omitempty"` // of what it asks for, what the one that serves is not allowed
	Problem string      `json:"problem"`           // why it waits
}

// PluginAsk is one permission a plugin asks for, with its reason.
type PluginAsk struct {
	Use    string   `json:"use"`
	Names  []string `json:"names,omitempty"`
	Reason string   `json:"reason"`
}

// describe fills in what a manifest says.
func (i *PluginInfo) describe(digest string, manifest wasm.Manifest) {
	i.Name, i.Version, i.Digest, i.Stateless = manifest.Name, manifest.Version, digest, manifest.Stateless
	i.Asks, i.Types = asksOf(manifest), nil
	for _, t := range manifest.Steps {
		i.Types = append(i.Types, sentinels.StepType(t.Type))
	}
}

// asksOf is what a manifest asks for.
func asksOf(manifest wasm.Manifest) []PluginAsk {
	var asks []PluginAsk
	for _, a := range manifest.Asks {
		asks = append(asks, PluginAsk{Use: a.Use, Names: slices.Clone(a.Names), Reason: a.Reason})
	}
	return asks
}

// Plugins returns the plugins that were loaded or tried, in that order.
func (rt *Runtime) Plugins() []PluginInfo {
	rt.plugins.mu.Lock()
	defer rt.plugins.mu.Unlock()
	return append([]PluginInfo(nil), rt.plugins.infos...)
}

// absent returns why no plugin provides a step type, nil if no plugin
// that waits has it.
func (s *pluginSet) absent(t sentinels.StepType) *abi.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.infos {
		if i.State == PluginWaiting && slices.Contains(i.Types, t) {
			e := errf(abi.Denied, "step type %q is provided by plugin %q, which waits for approval", t, i.Name)
			e.Hint = "sentinel plugin allow " + i.Name
			return e
		}
	}
	return nil
}
