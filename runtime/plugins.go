package runtime

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/pluginset"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/runtime/retry"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/role"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// newPlugins returns the plugins of the runtime, before any is loaded.
func (rt *Runtime) newPlugins() *pluginset.Set {
	return pluginset.New(pluginset.Options{
		Host: rt.guests, Blobs: rt.db, Log: rt.opt.Logger,
		WasTrusted: func(digest string) bool {
			_, ok, err := rt.db.Get(bucketTrusted, []byte(digest))
			return ok && err == nil
		},
		Grants: rt.opt.Grants, CheckPermission: rt.opt.CheckPermission, CheckRole: rt.opt.CheckRole, Changed: rt.opt.Observer.Plugin,
		Alive: rt.alive, Plugins: rt.opt.Limits.Plugins, PluginBytes: rt.opt.Limits.PluginBytes,
	})
}

// loadPlugins loads the plugins of Options and records the digests of trusted ones,
// so that a later release treats what an old one parked as it was treated then.
func (rt *Runtime) loadPlugins(ctx context.Context) error {
	if err := rt.plugins.LoadAll(ctx, rt.opt.Plugins); err != nil {
		return err
	}
	b := store.Batch{Lazy: true}
	for _, p := range rt.plugins.List() {
		if !p.Trusted || p.Digest == "" {
			continue
		}
		if _, ok, err := rt.db.Get(bucketTrusted, []byte(p.Digest)); err == nil && ok {
			continue
		}
		b.Puts = append(b.Puts, store.Put{Bucket: bucketTrusted, Key: []byte(p.Digest), Value: []byte(p.Version)})
	}
	if len(b.Puts) > 0 {
		rt.db.Enqueue(b)
	}
	return nil
}

// ForgetTrusted forgets which modules earlier releases loaded as trusted, but for those that are live: of a store that was
// made elsewhere, its own record says so, and a module in it could be anything. A step that waits in such a module goes
// on with what the operator allows.
func (rt *Runtime) ForgetTrusted(ctx context.Context) error {
	live := map[string]bool{}
	for _, p := range rt.plugins.List() {
		live[p.Digest] = p.Trusted
	}
	b := store.Batch{}
	err := rt.db.Scan(bucketTrusted, nil, nil, false, func(key, _ []byte) bool {
		if !live[string(key)] {
			b.Puts = append(b.Puts, store.Put{Bucket: bucketTrusted, Key: bytes.Clone(key), Delete: true})
		}
		return true
	})
	if err != nil || len(b.Puts) == 0 {
		return err
	}
	return rt.upkeep.health.Await(ctx, rt.db.Enqueue(b))
}

// LoadPlugin makes a plugin live, in place of the one that was loaded from the
// same source. It is compiled and checked whole before anything changes; iterations
// that have begun continue with what was live then, the next ones take the new
// one. When it is refused the old one stays, and the error as well as
// [plugin.Info] have the reason. A step type of another plugin is the error conflict; one
// that has to wait for the operator is the error denied, and has the state waiting. More
// than [Limits.Plugins] is the error limit.
//
// Several may be called at the same time: no plugin waits for another one to compile
// or to execute. Of two loads from one source the later to be ready wins.
func (rt *Runtime) LoadPlugin(ctx context.Context, p plugin.Source) (plugin.Info, error) {
	return rt.plugins.Load(ctx, p)
}

// PreparePlugin does of a [Runtime.LoadPlugin] all that executes or compiles what
// others wrote, side by side with other plugins. The error is why LoadPlugin would
// refuse the module. The caller gives the result to LoadPlugin in
// [plugin.Source.Prepared], or closes it.
func (rt *Runtime) PreparePlugin(ctx context.Context, module []byte) (plugin.Prepared, error) {
	return rt.plugins.Prepare(ctx, module)
}

// UnloadPlugin takes the plugin that was loaded from a source out: its step
// types are unknown to definitions that are read from now on and to iterations
// that begin. Iterations that have begun, and parked steps, end with it. Loops that use them are
// paused before their next iteration, with [run.ReasonNoPlugin], until a plugin has them again.
func (rt *Runtime) UnloadPlugin(_ context.Context, source string) error {
	return rt.plugins.Unload(source)
}

// Regrant asks [Options.Grants] again about every plugin. One that waited and
// is allowed now becomes live as by LoadPlugin. One that is not allowed any more
// waits: its step types are unknown to definitions that are read from now on and
// to iterations that begin, and host calls that its steps under way begin are denied,
// those of parked steps too.
//
// The error joins what could not be determined; those plugins stay as they are.
func (rt *Runtime) Regrant(ctx context.Context) error { return rt.plugins.Regrant(ctx) }

// CheckPluginTotals returns why a runtime cannot have so many plugins that are not
// trusted, with so many bytes in their files together: they pass [Limits.Plugins] or
// [Limits.PluginBytes]. It returns nil if it can.
func (rt *Runtime) CheckPluginTotals(count int, size int64) error {
	return rt.plugins.CheckTotals(count, size)
}

// Plugins returns the plugins that were loaded or tried, in that order.
func (rt *Runtime) Plugins() []plugin.Info { return rt.plugins.List() }

// Provided returns the step types of plugins that are live and allowed in a role, by the
// names of their plugins. What is loaded, swapped, removed or allowed counts for the next
// call.
func (rt *Runtime) Provided(as abi.Role) []plugin.Provided { return rt.plugins.Provided(as) }

// Unprovided returns why a role is not active: its plugin waits, was not allowed it, or
// cannot be loaded. name is that of a command, else of a step type. It returns nil if no
// plugin has it.
func (rt *Runtime) Unprovided(as abi.Role, name string) *abi.Error {
	return rt.plugins.Unprovided(as, name)
}

// Evaluate executes a step type in a pure role, a classifier of errors or of output, and
// returns its output, which keeps the contract of the role (clauses A9.3 and A9.4 of
// sdk/ABI.md). There is no run and no journal: the guest is called once, within 2 seconds,
// and its host calls are denied. Equal fields have equal outputs.
func (rt *Runtime) Evaluate(ctx context.Context, as abi.Role, t sentinels.StepType, fields json.RawMessage) (json.RawMessage, error) {
	return rt.plugins.Evaluate(ctx, as, t, fields, rt.opt.Limits.GuestMemory)
}

// maxClassify limits the time for all classifiers of one error.
const maxClassify = 5 * time.Second

// ClassifyError asks the error classifiers of plugins, in the order of the names of plugins;
// the first that knows the error decides. It is the [retry.Classifier] of steps, and for
// all else that retries. One that fails counts as not knowing.
func (rt *Runtime) ClassifyError(ctx context.Context, f role.Failure) (retry.Classification, bool) {
	ctx, cancel := context.WithTimeout(ctx, maxClassify)
	defer cancel()
	c := rt.plugins.ClassifyError(ctx, f, rt.opt.Limits.GuestMemory)
	if c == nil {
		return retry.Classification{}, false
	}
	class := retry.Classification{Category: retry.Category(c.Category), Subcategory: cmp.Or(c.Subcategory, "general"), Confidence: 1}
	if c.Confidence != nil {
		class.Confidence = *c.Confidence
	}
	return class, true
}

// ClassifyLines asks an output classifier about lines, at most [role.MaxLines]. The answer
// has an entry for each, nil where the classifier does not know the line, fails or is not
// there.
func (rt *Runtime) ClassifyLines(ctx context.Context, classifier sentinels.StepType, lines []role.Line) []*role.LineClass {
	return rt.plugins.ClassifyLines(ctx, classifier, lines, rt.opt.Limits.GuestMemory)
}

// Types returns the step types that definitions may use now.
func (rt *Runtime) Types() *sentinels.TypeSet { return rt.plugins.Types() }

// deniedType is the problem of a definition with a step type of a plugin that waits.
func (rt *Runtime) deniedType(t sentinels.StepType) (message, hint string) {
	if e := rt.plugins.Absent(t); e != nil {
		return e.Message, e.Hint
	}
	return "", ""
}
