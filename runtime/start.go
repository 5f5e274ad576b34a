package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// StartOptions say how a run begins.
type StartOptions struct {
	// Inputs are the values of the definition's inputs. Default: theirs.
	Inputs map[string]json.RawMessage
	// Variables are set before the first step. Default none.
	Variables map[string]json.RawMessage
	// Event is what $event is. Default null.
	Event *sentinels.Event
	// Workspace is the folder the run works in. Default: the definition's, else
	// the current folder. It is made absolute.
	Workspace string
	// Key, if set, is unique in the store: a second start with it returns the
	// first run.
	Key string
	// Revision is the stored revision that the definition is, 0 if none.
	Revision int
	// Pinned keeps the run on its revision when the definition is edited.
	Pinned bool
	// OnInterrupt decides about calls in doubt where neither the step nor the
	// definition does.
	OnInterrupt sentinels.Interrupt
	// Starter is the run that starts this one by a command. The new run is none of
	// its children, but the chain of events that it belongs to continues, so that
	// sentinels which start each other in a circle come to an end. Default: no run's
	// run.
	Starter sentinels.RunID

	parent  *run
	lenient bool          // inputs that the definition does not name are plain variables
	fork    *journal.Fork // of a run that is made from another one, whose workspace it has

	// A caller within the engine may have writes in the commit of the run's first
	// record, which is not lazy then. It makes the id, to name the run there.
	id    sentinels.RunID
	puts  []store.Put
	began func(*store.Ticket) // gets that commit; not called if there is none
}

// Start begins a run of def and returns its id once the beginning is in the
// store's queue; [Runtime.Wait] returns its result.
func (rt *Runtime) Start(ctx context.Context, def *sentinels.Definition, opt StartOptions) (sentinels.RunID, error) {
	opt.parent, opt.lenient, opt.fork, opt.id, opt.puts, opt.began = nil, false, nil, "", nil, nil
	return rt.startRun(ctx, def, opt)
}

func (rt *Runtime) startRun(ctx context.Context, def *sentinels.Definition, opt StartOptions) (sentinels.RunID, error) {
	if opt.Key != "" {
		id, ok, err := rt.startedBefore(opt.Key)
		if err != nil || ok {
			return id, err
		}
	}
	if opt.parent == nil { // a child belongs to a step that is under way
		if err := rt.writable(); err != nil {
			return "", err
		}
	}
	begin, err := rt.runStart(def, opt)
	if err != nil {
		return "", err
	}
	if opt.parent != nil {
		if err := opt.parent.checkNesting(def); err != nil {
			return "", err
		}
	}
	id := opt.id
	if id == "" {
		id = newRunID()
	}
	if opt.parent == nil {
		begin.Root = id
	}
	r := rt.newRun(id, begin, def, begin.Hash, opt.parent, 0)
	now := time.Now().UTC()
	r.info = RunInfo{
		ID: id, Sentinel: def.ID, Name: def.Name, Status: sentinels.StatusRunning, Revision: begin.Revision, Hash: begin.Hash,
		Workspace: begin.Workspace, Parent: begin.Parent, Root: begin.Root, CreatedAt: now, UpdatedAt: now,
	}
	if opt.fork != nil {
		noteFork(&r.info, opt.fork)
	}
	w := writeOptions{lazy: opt.puts == nil, info: true, puts: opt.puts}
	if opt.Key != "" {
		w.puts = append(w.puts, store.Put{Bucket: bucketStartKeys, Key: []byte(opt.Key), Value: []byte(id), Check: func(_ []byte, exists bool) error {
			if exists {
				return errf(abi.Conflict, "start key %q was used at the same time", opt.Key)
			}
			return nil
		}})
	}
	w.puts = append(w.puts, rt.index.StartPuts(r.info)...)
	// From here on others see the run. A caller that writes to its journal waits
	// until that begins.
	r.snap.Lock()
	if first, err := rt.adoptNew(r, opt.Key); err != nil || first != id {
		r.snap.Unlock()
		r.cancel(errStopped) // or the runtime would hold it to its own end
		r.budget.Close(r.id)
		return first, err
	}
	if opt.parent == nil { // a child is part of its parent's run
		rt.dispatch.RunStarted(def.ID, id)
	}
	rt.index.Began(r.info)
	start := r.write(w, &journal.Record{Kind: journal.RunStart, RunStart: begin})
	r.snap.Unlock()
	if opt.began != nil {
		opt.began(start)
	}
	start.OnDone(func(err error) {
		rt.mu.Lock()
		delete(rt.fresh, id)
		if opt.Key != "" {
			delete(rt.starting, opt.Key)
		}
		rt.mu.Unlock()
		if err != nil {
			rt.index.Forget(def.ID, id)
			r.cancel(err)
			return
		}
		r.report(Progress{Event: OnRunStart, Status: sentinels.StatusRunning, Revision: begin.Revision})
	})
	r.dropStart()
	r.startsPaused()
	go r.main()
	return id, nil
}

// startedBefore finds the run that was started with a key.
func (rt *Runtime) startedBefore(key string) (sentinels.RunID, bool, error) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.startedWith(key)
}

// startedWith is startedBefore for a caller that holds rt.mu. A key whose
// commit is on its way is in rt.starting, and leaves it only afterwards.
func (rt *Runtime) startedWith(key string) (sentinels.RunID, bool, error) {
	if id, ok := rt.starting[key]; ok {
		return id, true, nil
	}
	id, ok, err := rt.db.Get(bucketStartKeys, []byte(key))
	return sentinels.RunID(id), ok, err
}

// adoptNew is adopt for a run that begins. If another one has begun with its
// key meanwhile, that one's id is returned, and r is not adopted.
func (rt *Runtime) adoptNew(r *run, key string) (sentinels.RunID, error) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if key != "" {
		if id, ok, err := rt.startedWith(key); err != nil || ok {
			return id, err
		}
	}
	if err := rt.checkChildren(r); err != nil {
		return "", err
	}
	if err := rt.adoptLocked(r); err != nil {
		return "", err
	}
	rt.fresh[r.id] = r
	if key != "" {
		rt.starting[key] = r.id
	}
	return r.id, nil
}

// adopt makes r one of the runs that this process executes.
func (rt *Runtime) adopt(r *run) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.adoptLocked(r)
}

func (rt *Runtime) adoptLocked(r *run) error {
	if rt.closed {
		return ErrClosed
	}
	if rt.runs[r.id] != nil {
		return errf(abi.Conflict, "run %s is executing already", r.id)
	}
	if rt.draining {
		r.gate.Shut()
	}
	if rt.readOnly {
		r.clock.Hold()
	}
	rt.runs[r.id] = r
	if up := rt.activeAbove(r); up != nil {
		up.children++
	}
	rt.wg.Add(1)
	return nil
}

// runStart makes the first record of a run.
func (rt *Runtime) runStart(def *sentinels.Definition, opt StartOptions) (*journal.RunStartBody, error) {
	canonical, err := json.Marshal(def)
	if err != nil {
		return nil, err
	}
	begin := &journal.RunStartBody{
		Sentinel: def.ID, Hash: def.Hash(), Revision: opt.Revision, Pinned: opt.Pinned, Event: opt.Event,
		Seed: newSeed(), EventCursor: rt.events.End(), Interrupt: opt.OnInterrupt, Fork: opt.fork,
	}
	if opt.fork != nil && opt.fork.Iteration > 0 { // events that the other run would have received are received again
		begin.EventCursor = opt.fork.EventCursor
	}
	begin.Hops, begin.Path = rt.Chain(opt.Starter)
	if begin.Hops >= rt.limits.Hops {
		return nil, chain{Hops: begin.Hops, Path: begin.Path}.Through(def.ID).RefuseStart(def.ID, rt.limits.Hops)
	}
	if begin.Definition, err = rt.value(canonical); err != nil {
		return nil, err
	}
	if begin.Workspace = opt.Workspace; opt.fork == nil {
		if begin.Workspace, err = workspace(def, opt); err != nil {
			return nil, err
		}
	}
	inputs, err := fillInputs(def, opt)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(inputs)
	if err != nil {
		return nil, err
	}
	if begin.Inputs, err = rt.value(raw); err != nil {
		return nil, err
	}
	begin.Variables = map[string]json.RawMessage{}
	for name, v := range inputs {
		begin.Variables[name] = journal.Compact(v)
	}
	for name, v := range opt.Variables {
		if slices.Contains(sentinels.Reserved, name) {
			return nil, errf(abi.BadFields, "variable %q is reserved", name)
		}
		begin.Variables[name] = journal.Compact(v)
	}
	if p := opt.parent; p != nil {
		begin.Parent, begin.Root, begin.ParentCall = p.id, p.begin.Root, opt.Key
		begin.Ancestry = append(append([]sentinels.ID(nil), p.begin.Ancestry...), p.begin.Sentinel)
		if begin.Event == nil {
			p.mu.Lock()
			begin.Event = p.state.Event // of the iteration that starts it
			p.mu.Unlock()
		}
		if begin.Interrupt == "" {
			begin.Interrupt = p.begin.Interrupt
		}
	}
	return begin, nil
}

func workspace(def *sentinels.Definition, opt StartOptions) (string, error) {
	dir := opt.Workspace
	switch {
	case def.Workspace == "":
	case filepath.IsAbs(def.Workspace):
		dir = def.Workspace
	default:
		dir = filepath.Join(dir, def.Workspace)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("workspace %q: %w", dir, err)
	}
	return abs, nil
}

// fillInputs checks the given inputs against the definition's and adds the
// defaults.
func fillInputs(def *sentinels.Definition, opt StartOptions) (map[string]json.RawMessage, error) {
	inputs := map[string]json.RawMessage{}
	names := make([]string, 0, len(def.Inputs))
	for name, in := range def.Inputs {
		names = append(names, name)
		if in.Default != nil {
			inputs[name] = in.Default
		}
	}
	sort.Strings(names)
	for name, v := range opt.Inputs {
		in, ok := def.Inputs[name]
		if !ok && len(def.Inputs) > 0 && !opt.lenient {
			return nil, unknownInput(def, name)
		}
		if err := checkInput(name, in, v); err != nil {
			return nil, err
		}
		inputs[name] = v
	}
	for _, name := range names {
		if _, ok := inputs[name]; !ok && def.Inputs[name].Required {
			return nil, &abi.Error{Code: abi.BadFields, Field: name, Message: fmt.Sprintf("sentinel %q needs the input %q", def.ID, name), Hint: def.Inputs[name].Description}
		}
	}
	return inputs, nil
}

func unknownInput(def *sentinels.Definition, name string) *abi.Error {
	names := make([]string, 0, len(def.Inputs))
	for n := range def.Inputs {
		names = append(names, n)
	}
	e := &abi.Error{Code: abi.BadFields, Field: name, Message: fmt.Sprintf("sentinel %q has no input %q", def.ID, name)}
	if near := sentinels.Suggest(name, names); len(near) > 0 {
		e.Hint = fmt.Sprintf("did you mean %q?", near[0])
	}
	return e
}

func checkInput(name string, in sentinels.Input, v json.RawMessage) error {
	if in.Type != "" && !hasType(v, in.Type) {
		return &abi.Error{Code: abi.BadFields, Field: name, Message: fmt.Sprintf("input %q: %s is no %s", name, clip(v), in.Type)}
	}
	if len(in.Enum) == 0 {
		return nil
	}
	for _, allowed := range in.Enum {
		if sameJSON(allowed, v) {
			return nil
		}
	}
	return &abi.Error{Code: abi.BadFields, Field: name, Message: fmt.Sprintf("input %q: %s is none of the values it may have", name, clip(v))}
}

func hasType(v json.RawMessage, want string) bool {
	var x any
	if json.Unmarshal(v, &x) != nil {
		return false
	}
	switch x := x.(type) {
	case string:
		return want == "string"
	case bool:
		return want == "boolean"
	case float64:
		return want == "number" || want == "integer" && x == float64(int64(x))
	case []any:
		return want == "array"
	case map[string]any:
		return want == "object"
	}
	return false
}
