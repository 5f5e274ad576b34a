package execution

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/pluginset"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
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

// missingPlugin returns why a step of a loop has no plugin in a view, nil if each has one. A
// definition that is executed once does not count as a loop: its caller gets the error of the step. A plugin that the
// operator has denied is not missing: the step fails with that.
func missingPlugin(def *sentinels.Definition, v *pluginset.View) error {
	if def.Loop.Type == sentinels.LoopOnce {
		return nil
	}
	for _, list := range def.Lists() {
		if err := missingIn(list.Steps, v); err != nil {
			return err
		}
	}
	return nil
}

func missingIn(steps []sentinels.Step, v *pluginset.View) error {
	for i := range steps {
		if _, err := v.Lookup(steps[i].Type); err != nil && abi.CodeOf(err) != abi.Denied {
			return err
		}
		for _, nested := range steps[i].Blocks {
			if err := missingIn(nested, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// pausedForPlugin reports whether the run is paused by pauseForPlugin.
func (r *liveRun) pausedForPlugin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.info.Status == sentinels.StatusPaused && strings.HasPrefix(r.info.Reason, run.ReasonNoPlugin)
}

// pauseForPlugin pauses the run before an iteration that would find a step without a plugin.
func (r *liveRun) pauseForPlugin(missing error) {
	r.pause(run.ReasonNoPlugin+textcut.Mark(missing.Error(), maxPluginReason), "", "")
}

// maxPluginReason limits the bytes of the reason of a pause.
const maxPluginReason = 300

// waitWhilePaused waits between iterations while the run is paused. A run that is paused for a
// plugin is resumed when its steps have one again, by the return of the plugin or by an edit.
func (r *liveRun) waitWhilePaused() error {
	for r.pausedForPlugin() {
		swapped := r.ex.opt.Plugins.Swapped()
		view := r.ex.opt.Plugins.View()
		missing := missingPlugin(r.newest().def, view)
		view.End()
		if missing == nil {
			if err := r.resume(r.ctx, run.ResumeOptions{By: "plugin"}); err != nil && abi.CodeOf(err) != abi.Conflict {
				return err
			}
			continue
		}
		ctx, cancel := r.cancelOnEdit()
		over := make(chan struct{})
		var watch sync.WaitGroup
		watch.Go(func() {
			select {
			case <-swapped:
				r.wakeForEdit()
			case <-over:
			}
		})
		err := r.WaitWhilePaused(ctx)
		close(over)
		watch.Wait()
		cancel()
		if err != nil && !errors.Is(err, errEdited) {
			return err
		}
	}
	return r.WaitWhilePaused(r.ctx)
}
