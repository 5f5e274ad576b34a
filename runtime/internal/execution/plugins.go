package execution

import (
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/pluginset"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// begun lists the step types and modules that the unfinished attempts of a run began
// with.
func begun(open history.Executions) []pluginset.Began {
	var list []pluginset.Began
	for _, e := range open {
		if e.End == nil && e.Module != "" {
			list = append(list, pluginset.Began{Type: e.Type, Digest: e.Module})
		}
	}
	return list
}

// setPlugins makes v what the run's steps see, nil at the end of an iteration, and
// ends the view before it. No step of the run is executed meanwhile.
func (r *liveRun) setPlugins(v *pluginset.View) {
	r.mu.Lock()
	before := r.view
	r.view = v
	r.mu.Unlock()
	before.End()
}

// reread returns a definition as the step types of an iteration read it: where a
// plugin was swapped, a field may hold steps now that was plain data before. One
// that they cannot read stays as it is; the step that is concerned says why.
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

// Plugins returns what the steps of the current iteration see.
func (r *liveRun) Plugins() *pluginset.View {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.view
}
