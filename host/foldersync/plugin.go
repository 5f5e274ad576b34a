package foldersync

import (
	"context"
	"slices"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// kindOfPlugin is the kind of problems of plugins.
const kindOfPlugin sentinels.Kind = "plugin"

// loadPlugins loads files of plugins and reports whether the step types have
// changed. New modules are compiled in the background first, and loaded by
// another call. Files are sorted by name, so that of two files with the same step
// types always the same one is refused.
func (r *Syncer) loadPlugins(ctx context.Context, list []*file) bool {
	if len(list) == 0 {
		return false
	}
	before := r.typesKey()
	slices.SortFunc(list, compareFiles)
	for _, f := range list {
		if ctx.Err() == nil {
			r.loadPlugin(ctx, f)
		}
	}
	return r.typesKey() != before
}

func (r *Syncer) loadPlugin(ctx context.Context, f *file) {
	distrust := r.opt.Trust.Check(f.origin)
	var code []byte
	var err error
	if distrust == nil {
		if code, err = f.root.watcher.ReadFile(f.rel, maxPlugin); err == nil {
			distrust = r.opt.Trust.CheckContent(f.origin, code)
		}
	}
	if p := r.untrusted(f, distrust); p != nil {
		if !f.untrusted {
			r.opt.Logger.Warn("plugin file is refused", "file", f.shown, "reason", p.Message)
		}
		f.digest, f.untrusted = "", true
		f.invalid(*p)
		r.tryAgain()
		return
	}
	f.untrusted = false
	if err != nil && !f.root.watcher.Exists(f.rel) {
		r.miss(f)
		return
	}
	p := plugin.Source{Name: f.source()}
	if fault := err; fault != nil {
		if f.state == Invalid && f.unreadable == fault.Error() {
			return // as before
		}
		f.digest, f.unreadable = "", fault.Error()
		p.Wasm = func() ([]byte, error) { return nil, fault }
	} else if p.Wasm = r.moduleOf(ctx, f, code, &p); p.Wasm == nil {
		return
	}
	info, err := r.opt.Plugins.LoadPlugin(ctx, p)
	if abi.CodeOf(err) == abi.Conflict {
		// A file that was renamed: the one that it was called before is gone.
		if old := r.renamedFrom(info.Name); old != nil {
			p.Replaces = old.source()
			if info, err = r.opt.Plugins.LoadPlugin(ctx, p); err == nil {
				r.endFile(ctx, old)
			}
		}
	}
	if err != nil && info.State == plugin.Waiting {
		f.plugin = info.Name
		f.waits(info.Problem) // the engine has logged it
		return
	}
	if err != nil {
		hint := ""
		if e := abi.As(err); e != nil {
			hint = e.Hint
		}
		if !f.failing {
			r.opt.Logger.Warn("plugin file is refused", "file", f.shown, "reason", err)
		}
		// No fault of the file: the disk has no space for its code, or the machine was
		// busy, as a rule.
		if f.failing = passes(err); f.failing {
			r.tryAgain()
		}
		f.invalid(f.problem(kindOfPlugin, err.Error(), hint))
		return
	}
	f.state, f.plugin, f.problems, f.failing = Live, info.Name, nil, false
}

// moduleOf returns the bytes of a file's module, or why they are not loaded, once
// they are prepared. It returns nil while they are not, and if the module is live.
func (r *Syncer) moduleOf(ctx context.Context, f *file, code []byte, p *plugin.Source) func() ([]byte, error) {
	// A half-written module is refused by its sections, so it needs no rule of its
	// own: the rest of it is another change.
	f.digest, f.size, f.missing, f.unreadable = digest(code), int64(len(code)), time.Time{}, ""
	if info, ok := r.pluginOf(f.source()); ok && info.State != plugin.Refused && r.matches(f, info) {
		return nil // the host's start did it, or the file is as it was
	}
	fault := r.checkTotals(f)
	if hidden(f.source()) {
		fault = errHidden
	}
	if fault == nil {
		end := r.prepared(ctx, f, code)
		if end == nil {
			f.state, f.problems = Compiling, nil
			return nil
		}
		p.Prepared, fault = end.module, end.fault
	}
	return func() ([]byte, error) {
		// Here and not before, so that the engine's list of plugins has the reason too.
		if r.opt.Lock != nil {
			if err := r.opt.Lock.Check(f.source(), f.digest); err != nil {
				return nil, err
			}
		}
		return code, fault
	}
}

// checkTotals returns why a file is one plugin too many, before it is compiled. Which
// ones are depends on the order of names at a start, later on which came first.
func (r *Syncer) checkTotals(f *file) error {
	count, size := 1, f.size
	for _, other := range r.files {
		if other != f && other.kind == KindPlugin && (other.state == Live || other.state == Waiting || other.state == Compiling) {
			count++
			size += other.size
		}
	}
	return r.opt.Plugins.CheckPluginTotals(count, size)
}

// passes reports whether the cause of a refusal may pass by itself.
func passes(err error) bool {
	e := abi.As(err)
	return e != nil && !e.Permanent && (e.Code == abi.Unavailable || e.Code == abi.Timeout)
}

// matches makes a file's state that of the plugin that was loaded from it, and
// reports false if that is of another content.
func (r *Syncer) matches(f *file, info plugin.Info) bool {
	switch {
	case info.Next != nil && info.Next.Digest == f.digest:
		f.plugin = info.Name
		f.waits(info.Next.Problem)
	case info.Digest != f.digest:
		return false
	case info.State == plugin.Waiting:
		f.plugin = info.Name
		f.waits(info.Problem)
	case info.State == plugin.Live && info.Refused == "":
		f.state, f.plugin, f.problems = Live, info.Name, nil
	default:
		return false
	}
	return true
}

// waits says of a file that the operator has to decide about it.
func (f *file) waits(why string) {
	f.invalid(f.problem(kindOfPlugin, why, "sentinel plugin allow "+f.plugin))
	f.state = Waiting
}

// Regrant makes the engine read the grants of plugins again, as after a change of
// the file of grants, and checks the definitions again that use them.
func (r *Syncer) Regrant(ctx context.Context) error {
	if err := r.acquire(ctx); err != nil {
		return err
	}
	defer r.release()
	before := r.typesKey()
	err := r.opt.Plugins.Regrant(ctx)
	var dirty []*file
	if r.follow(); r.typesKey() != before {
		dirty = r.definitionsAnd(nil)
	}
	r.settle(ctx, dirty)
	return err
}

// regrant is Regrant within a batch, and reports whether the step types, or what
// they may do, have changed.
func (r *Syncer) regrant(ctx context.Context) bool {
	before := r.typesKey()
	if err := r.opt.Plugins.Regrant(ctx); err != nil && ctx.Err() == nil {
		r.opt.Logger.Warn("grants of plugins cannot be read", "error", err)
	}
	r.follow()
	return r.typesKey() != before
}

// follow makes the states of files those of their plugins. A file that was
// refused was so for another reason than its grant.
func (r *Syncer) follow() {
	for _, f := range r.files {
		if f.kind != KindPlugin || f.state != Live && f.state != Waiting {
			continue
		}
		if info, ok := r.pluginOf(f.source()); ok {
			r.matches(f, info)
		}
	}
}

// renamedFrom returns the file of a plugin that is gone but still serves.
func (r *Syncer) renamedFrom(name string) *file {
	for _, f := range r.files {
		if f.kind == KindPlugin && f.plugin == name && !f.missing.IsZero() {
			return f
		}
	}
	return nil
}

func (r *Syncer) pluginOf(source string) (plugin.Info, bool) {
	for _, p := range r.opt.Plugins.Plugins() {
		if p.Source == source {
			return p, true
		}
	}
	return plugin.Info{}, false
}

// refusedPlugins are the files of plugins that are there and not live.
func (r *Syncer) refusedPlugins() []*file {
	var list []*file
	for _, f := range r.files {
		if f.kind == KindPlugin && f.state == Invalid && f.missing.IsZero() {
			list = append(list, f)
		}
	}
	return list
}

// unloadPlugin takes the step types of a file that is gone out.
func (r *Syncer) unloadPlugin(ctx context.Context, f *file) {
	err := r.opt.Plugins.UnloadPlugin(ctx, f.source())
	if err != nil && abi.CodeOf(err) != abi.NotFound && ctx.Err() == nil {
		r.opt.Logger.Warn("plugin of a file that is gone cannot be unloaded", "file", f.shown, "reason", err)
		return
	}
	if err == nil {
		r.opt.Logger.Info("plugin is unloaded", "file", f.shown, "plugin", f.plugin)
	}
}
