package execution

import (
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/pluginset"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// begun returns the step types and module digests that the unfinished attempts of a run
// started with.
func begun(open history.Executions) []pluginset.Began {
	var list []pluginset.Began
	for _, e := range open {
		if e.End == nil && e.Module != "" {
			list = append(list, pluginset.Began{Type: e.Type, Digest: e.Module})
		}
	}
	return list
}

// setPlugins replaces the plugins that the run's steps see, and releases those before.
// v is nil between iterations. No step of the run executes meanwhile.
func (r *liveRun) setPlugins(v *pluginset.View) {
	r.mu.Lock()
	before := r.view
	r.view = v
	r.mu.Unlock()
	before.End()
}

// decodeForView decodes a definition again with the step types of an iteration, if a
// plugin was replaced: a field that was plain data may contain steps now. If that
// fails, the definition is used as it is, and the step concerned fails with the reason.
func (r *liveRun) decodeForView(def *sentinels.Definition, v *pluginset.View) *sentinels.Definition {
	types, swaps := v.Live()
	r.mu.Lock()
	before := r.types
	r.types = types
	r.mu.Unlock()
	if swaps == 0 || before == types {
		return def // the usual case
	}
	text, err := json.Marshal(def)
	if err != nil {
		return def
	}
	opt := r.ex.opt.Definitions.DecodeOptions(string(def.ID))
	opt.Types = types
	again, _, err := r.ex.opt.Definitions.DecodeStoredWith(text, opt)
	if err != nil {
		r.ex.svc.Log.Warn("definition cannot be read with the plugins that are live now", "run", r.id, "error", err)
		return def
	}
	return again
}

// Plugins implements [step.State].
func (r *liveRun) Plugins() *pluginset.View {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.view
}
