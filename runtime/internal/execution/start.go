package execution

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sentinel-runtime/sentinel/runtime/internal/eventlog"
	"github.com/sentinel-runtime/sentinel/runtime/internal/execution/step"
	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/revision"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Start is Runtime.Start of package runtime.
func (ex *Executor) Start(ctx context.Context, def *sentinels.Definition, opt run.StartOptions) (sentinels.RunID, error) {
	o := startOptions{StartOptions: opt}
	o.Key = given(opt.Key)
	if caller := step.CallerOf(ctx); caller != nil {
		parent, err := ex.caller(caller)
		switch {
		case err == nil && opt.Child:
			o.parent, o.commanded = parent, true
			o.Key = cmp.Or(o.Key, step.RunKey(caller.Key, "child"))
		case opt.Child:
			return "", fmt.Errorf("start %q: %w", def.ID, err)
		case err == nil:
			o.caller = parent
		}
	}
	return ex.startForCaller(ctx, def, o)
}

// startForCaller is startRun for a caller that waits for the first record only if it says so: further records
// take it to the disk. A run that waits for its turn has none, so its caller waits.
func (ex *Executor) startForCaller(ctx context.Context, def *sentinels.Definition, opt startOptions) (sentinels.RunID, error) {
	var begun *store.Ticket
	opt.enqueued = func(start *store.Ticket) { begun = start }
	id, err := ex.startRun(ctx, def, opt)
	if err == nil && begun != nil && (opt.Durable || waitsForTurn(opt.Overlap)) {
		err = ex.opt.Health.Await(ctx, begun)
	}
	return id, err
}

// given returns the start key for one that a caller gives. Those that the engine makes, of children and
// firings, have another beginning: no caller can start a run that a step would take for its own child.
func given(key string) string {
	if key == "" {
		return ""
	}
	return givenKey + key
}

const givenKey = "given/"

// caller returns the run that makes a host call.
func (ex *Executor) caller(caller *step.Caller) (*liveRun, error) {
	r, ok := caller.Run.(*liveRun)
	if !ok || r.ex != ex {
		return nil, failure.New(abi.Internal, "the run that calls is of another engine")
	}
	return r, nil
}

// A Firing is the start of a run by a trigger, in one commit with writes of the caller.
type Firing struct {
	run.StartOptions
	// ID is the run's id. The caller chooses it so that Puts can name the run.
	ID sentinels.RunID
	// Trigger is the name of the trigger.
	Trigger string
	// Puts are committed with the run's first record.
	Puts []store.Put
}

// StartFired starts a run for a trigger. The returned ticket is that of the commit, nil
// if a run with the key was started before.
func (ex *Executor) StartFired(ctx context.Context, def *sentinels.Definition, f Firing) (sentinels.RunID, *store.Ticket, error) {
	var ticket *store.Ticket
	id, err := ex.startRun(ctx, def, startOptions{StartOptions: f.StartOptions, id: f.ID, trigger: f.Trigger, puts: f.Puts, enqueued: func(begun *store.Ticket) { ticket = begun }})
	return id, ticket, err
}

// startOptions are the options of a start within the engine.
type startOptions struct {
	run.StartOptions
	parent  *liveRun
	lenient bool // inputs that the definition does not name become plain variables
	// Of an inline child: its identity, the variables that it begins with, and the names of the inputs
	// that are variables too, as those of other runs are.
	identity  sentinels.ID
	inherited map[string]journal.Value
	own       map[string]bool
	folder    string                         // its workspace, in place of the definition's
	named     map[sentinels.ID]journal.Value // of a fork: RunStartBody.Named of its origin
	called    bool                           // the host has made the definition, and chosen its workspace
	commanded bool                           // a child by a command of its parent, see [run.StartOptions.Child]
	caller    *liveRun                       // whose step starts the run, which is not its child; nil for none
	inputsBy  map[string]string              // of a fork: RunStartBody.InputsBy
	fork      *journal.Fork                  // origin of a fork, whose workspace the run keeps; else nil
	stored    revision.Stored                // of Revision, read by startRun
	// puts are committed with the run's first record, which is then not lazy. id is the
	// run's id, so that puts can name it.
	id       sentinels.RunID
	trigger  string // name of the trigger that starts the run
	puts     []store.Put
	enqueued func(*store.Ticket) // receives the ticket of the first commit; not called if no run is started
}

// byPerson reports whether a person starts the run by hand. One of a revision that an agent has made counts for the agent,
// but an agent with many runs keeps no person from starting it.
func (opt *startOptions) byPerson() bool {
	return opt.As == "" && opt.Within == nil && opt.parent == nil && opt.caller == nil && opt.trigger == ""
}

// maker returns the agent or model that starts the run, or whose run does; "" for a person.
func (opt *startOptions) maker() string {
	if by := cmp.Or(emitsFor(opt.As, opt.Within != nil), opt.GivenBy); by != "" || opt.parent == nil {
		return by
	}
	return emitsFor(opt.parent.begin.As, opt.parent.begin.Within != nil)
}

// startRun starts a run and returns its id. If a run was started with the key before,
// it returns that run's id.
func (ex *Executor) startRun(ctx context.Context, def *sentinels.Definition, opt startOptions) (sentinels.RunID, error) {
	if opt.Key != "" {
		id, ok, err := ex.findStarted(opt.Key)
		if err != nil || ok {
			return id, err
		}
	}
	if opt.parent == nil { // a child belongs to a step that has begun, which may finish
		if err := ex.opt.Health.Writable(); err != nil {
			return "", err
		}
	}
	if err := ex.absent(def, opt); err != nil {
		return "", err
	}
	if opt.Revision != 0 { // read here, so that no way to start a stored definition can forget its bound
		var err error
		if opt.stored, err = ex.opt.Definitions.Revision(cmp.Or(opt.identity, def.ID), opt.Revision); err != nil {
			return "", err
		}
		limited, err := ex.keepLimits(opt.stored.ID, definitionVersion{def: def, revision: opt.Revision, within: opt.stored.Within}, nil)
		if err != nil {
			return "", err
		}
		def = limited.def
	}
	canonical, err := json.Marshal(def)
	if err != nil {
		return "", err
	}
	begin, err := ex.runStart(def, canonical, opt)
	if err != nil {
		return "", err
	}
	if opt.parent != nil {
		if err := opt.parent.checkNesting(begin.Sentinel, opt.commanded); err != nil {
			return "", err
		}
	}
	id := opt.id
	if id == "" {
		id = NewRunID()
	}
	if opt.parent == nil {
		begin.Root = id
		if err := ex.mayStopBefore(begin, id, opt.Over); err != nil {
			return "", err
		}
	}
	r := ex.newRun(id, begin, def, begin.Hash, opt.parent, 0)
	r.expect(canonical)
	now := time.Now().UTC()
	r.info = run.Info{
		ID: id, Run: id, Sentinel: begin.Sentinel, Name: def.Name, Revision: begin.Revision, Hash: begin.Hash,
		Workspace: begin.Workspace, As: begin.As, By: emitsFor(begin.As, begin.Within != nil), Parent: begin.Parent, Root: begin.Root, CreatedAt: now, StartedAt: now.UnixMilli(), UpdatedAt: now,
	}
	if r.info.By != "" {
		r.info.StartBytes = startBytes(begin)
		leave, err := ex.admitHeld(ctx, &r.info, (opt.parent == nil || opt.commanded) && !opt.byPerson())
		if err != nil {
			r.cancel(step.ErrStopped)
			r.expect(nil)
			r.budget.Close(r.id)
			return "", err
		}
		defer leave()
	}
	if opt.fork != nil {
		noteFork(&r.info, opt.fork)
		r.info.ApprovedBy = opt.fork.ApprovedBy
	}
	w := step.Commit{Lazy: opt.puts == nil && !opt.Durable && !r.waitsForTurn(), Summary: true, Puts: opt.puts}
	if opt.Key != "" {
		w.Puts = append(w.Puts, store.Put{Bucket: BucketStartKeys, Key: []byte(opt.Key), Value: []byte(id), Check: func(_ []byte, exists bool) error {
			if exists {
				return failure.New(abi.Conflict, "start key %q was used by a concurrent start", strings.TrimPrefix(opt.Key, givenKey))
			}
			return nil
		}})
	}
	w.Puts = append(w.Puts, ex.opt.Index.StartPuts(r.info)...)
	alone := opt.parent == nil && opt.Overlap == sentinels.OverlapSkip
	if alone {
		if active := ex.opt.Triggers.RunStartsAlone(OverlapID(r.info), id, chainOf(begin, eventlog.ChainOf(begin.Event))); len(active) > 0 {
			r.cancel(step.ErrStopped)
			r.expect(nil)
			r.budget.Close(r.id)
			return "", ex.notAlone(begin.Sentinel, active)
		}
	}
	// The run is visible from here on. r.snap blocks callers that would write to its
	// journal before the first record.
	r.snap.Lock()
	if first, err := ex.adoptNew(r, opt.Key); err != nil || first != id {
		r.snap.Unlock()
		r.cancel(step.ErrStopped) // releases the context
		r.expect(nil)
		r.budget.Close(r.id)
		if alone {
			ex.opt.Triggers.RunEnded(OverlapID(r.info), id)
		}
		return first, err
	}
	if opt.parent == nil { // children do not count as runs of a trigger
		ex.opt.Triggers.RunStarted(OverlapID(r.info), id, chainOf(begin, eventlog.ChainOf(begin.Event)))
	}
	ex.opt.Index.Began(r.info)
	start := r.Write(w, &journal.Record{Kind: journal.RunStart, RunStart: begin})
	r.snap.Unlock()
	if opt.enqueued != nil {
		opt.enqueued(start)
	}
	before, status := r.Iteration(), r.status()
	start.OnDone(func(err error) {
		ex.mu.Lock()
		delete(ex.unstored, id)
		if opt.Key != "" {
			delete(ex.starting, opt.Key)
		}
		ex.mu.Unlock()
		if err != nil {
			ex.opt.Index.Forget(begin.Sentinel, id)
			r.cancel(err)
			return
		}
		r.Report(run.Progress{Event: run.OnRunStart, Status: status, Message: r.queuedReason(status), Iteration: before, Revision: begin.Revision})
	})
	r.dropStart()
	r.pauseWithParent()
	go r.main()
	return id, nil
}

// absent returns an error if something that the run needs is not available on this host.
func (ex *Executor) absent(def *sentinels.Definition, opt startOptions) error {
	named := func(id sentinels.ID) bool {
		_, ok := opt.named[id]
		if opt.parent != nil && !opt.commanded {
			_, ok = opt.parent.begin.Named[id]
		}
		return ok || opt.Named[id] != nil
	}
	if err := ex.opt.Absent(def, cmp.Or(opt.identity, def.ID), named); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(opt.Named)) {
		if err := ex.opt.Absent(opt.Named[id], id, named); err != nil {
			return err
		}
	}
	return nil
}

// findStarted returns the run that was started with a key; ok is false if there is
// none.
func (ex *Executor) findStarted(key string) (id sentinels.RunID, ok bool, err error) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	return ex.findStartedLocked(key)
}

// findStartedLocked is findStarted for a caller that holds ex.mu. A key is in
// ex.starting until its commit is done, and in the store afterwards.
func (ex *Executor) findStartedLocked(key string) (sentinels.RunID, bool, error) {
	if id, ok := ex.starting[key]; ok {
		return id, true, nil
	}
	id, ok, err := ex.opt.Store.Get(BucketStartKeys, []byte(key))
	return sentinels.RunID(id), ok, err
}

// adoptNew adds a new run to the active runs. If another run was started with the same
// key meanwhile, it returns the id of that one and does not add r.
func (ex *Executor) adoptNew(r *liveRun, key string) (sentinels.RunID, error) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	if key != "" {
		if id, ok, err := ex.findStartedLocked(key); err != nil || ok {
			return id, err
		}
	}
	if err := ex.checkWaiting(r); err != nil {
		return "", err
	}
	if err := ex.checkTurns(r); err != nil {
		return "", err
	}
	if err := ex.adoptLocked(r); err != nil {
		return "", err
	}
	ex.takePlace(r)
	r.showQueued()
	r.mu.Lock()
	r.info.Status = r.activeStatus()
	r.mu.Unlock()
	ex.unstored[r.id] = r
	if key != "" {
		ex.starting[key] = r.id
	}
	return r.id, nil
}

// adopt adds a restored run to the active runs.
func (ex *Executor) adopt(r *liveRun) error {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	err := ex.adoptLocked(r)
	if err == nil {
		ex.restorePlace(r)
	}
	return err
}

// adoptLocked adds a run to the active runs. The caller holds ex.mu.
func (ex *Executor) adoptLocked(r *liveRun) error {
	if ex.closed {
		return ErrClosed
	}
	if ex.runs[r.id] != nil {
		return failure.New(abi.Conflict, "run %s is already active", r.id)
	}
	if ex.draining {
		r.gate.Shut()
	}
	if ex.readOnly {
		r.clock.Hold()
	}
	ex.runs[r.id] = r
	ex.joinShare(r)
	ex.wg.Add(1)
	return nil
}

// runStart returns the first record of a run of def, whose JSON is canonical.
func (ex *Executor) runStart(def *sentinels.Definition, canonical []byte, opt startOptions) (begin *journal.RunStartBody, err error) {
	begin = &journal.RunStartBody{
		Sentinel: cmp.Or(opt.identity, def.ID), Hash: def.Hash(), Revision: opt.Revision, Pinned: opt.Pinned, Event: opt.Event, GivenBy: opt.GivenBy,
		Seed: newSeed(), EventCursor: ex.svc.Events.End(), RunEventCursor: ex.svc.RunEvents.End(), Interrupt: opt.OnInterrupt, As: opt.As, Trigger: opt.trigger, Fork: opt.fork, Overlap: opt.Overlap,
		CausedBy: ex.causedBy(opt),
	}
	if opt.fork != nil && opt.fork.Iteration > 0 { // the fork receives the events that the other run received
		begin.EventCursor, begin.RunEventCursor = opt.fork.EventCursor, opt.fork.RunEventCursor
	}
	begin.Hops, begin.Path = ex.Chain(opt.Starter)
	if begin.Hops >= ex.svc.Limits.Hops {
		return nil, chain{Hops: begin.Hops, Path: begin.Path}.Through(begin.Sentinel).RefuseStart(begin.Sentinel, ex.svc.Limits.Hops)
	}
	if begin.Definition, err = ex.svc.Values.Definition(canonical); err != nil {
		return nil, err
	}
	if begin.Workspace = opt.Workspace; opt.fork == nil {
		if begin.Workspace, err = workspace(cmp.Or(opt.folder, def.Workspace), opt.Workspace); err != nil {
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
	if begin.Inputs, err = ex.svc.Values.Redacted(raw); err != nil {
		return nil, err
	}
	begin.InputsBy = opt.inputsBy
	if by := opt.maker(); by != "" && opt.fork == nil {
		begin.InputsBy = map[string]string{}
		for name := range opt.Inputs {
			begin.InputsBy[name] = by
		}
	}
	begin.Inherited = opt.inherited
	var maker string
	if begin.Within, maker, err = ex.bound(opt); err != nil {
		return nil, err
	}
	if begin.Named, err = ex.named(opt); err != nil {
		return nil, err
	}
	begin.Variables = map[string]json.RawMessage{}
	for name, v := range def.Variables {
		begin.Variables[name] = journal.Compact(v)
	}
	for name, v := range inputs {
		if opt.own == nil || opt.own[name] {
			begin.Variables[name] = journal.Compact(v)
		}
	}
	for name, v := range opt.Variables {
		if slices.Contains(sentinels.Reserved, name) {
			return nil, failure.New(abi.BadFields, "variable %q is reserved", name)
		}
		begin.Variables[name] = journal.Compact(v)
	}
	begin.Variables = ex.svc.Redact.Values(begin.Variables) // as $inputs has them
	if (opt.parent == nil || opt.commanded) && opt.fork == nil && begin.Within != nil && !opt.called && !inside(begin.Workspace, opt.Workspace) {
		return nil, outside(begin.Workspace, opt.Workspace)
	}
	if p := opt.parent; p != nil {
		if begin.Within != nil && !opt.called && !opt.commanded && !inside(begin.Workspace, p.begin.Workspace) {
			return nil, &abi.Error{Code: abi.Denied, Permanent: true, Field: "workspace", Message: fmt.Sprintf("workspace %s is not in %s, the one of run %s", begin.Workspace, p.begin.Workspace, p.id),
				Hint: "a definition that comes from a model or an agent works in the workspace of the run that starts it"}
		}
		begin.Parent, begin.Root, begin.ParentCall = p.id, p.begin.Root, opt.Key
		begin.Ancestry = append(append([]sentinels.ID(nil), p.begin.Ancestry...), p.begin.Sentinel)
		if begin.Event == nil && !opt.commanded {
			p.mu.Lock()
			begin.Event = p.folded.Event // the event of the parent's iteration
			p.mu.Unlock()
		}
		if begin.Interrupt == "" {
			begin.Interrupt = p.begin.Interrupt
		}
		begin.As = p.As()
	}
	// The author of the steps counts first: a run of a trigger, a child and a run that another agent
	// starts execute for the agent that made their definition.
	begin.As = cmp.Or(maker, begin.As)
	return begin, nil
}

// outside is the error of a definition with a bound that would work outside of the workspace of who
// starts it.
func outside(dir, base string) error {
	return &abi.Error{Code: abi.Denied, Permanent: true, Field: "workspace", Message: fmt.Sprintf("workspace %s is not in %s", dir, base),
		Hint: "a definition that comes from a model or an agent works in the workspace of who starts it; a person lifts that with `sentinel accept`"}
}

// CheckBoundWorkspace returns an error if dir, the workspace of a definition with a bound, is not in
// base.
func CheckBoundWorkspace(dir, base string) error {
	if inside(dir, base) {
		return nil
	}
	return outside(dir, base)
}

// bound returns the commands that a new run may call, nil for all: what bounds its
// starter, the run above it and its revision. maker is the agent that has stored a revision with a bound.
func (ex *Executor) bound(opt startOptions) (within []string, maker string, err error) {
	within = opt.Within
	if opt.parent != nil && !opt.commanded && (!opt.called || within == nil) {
		within = ex.both(within, opt.parent.Within())
	}
	if opt.Revision == 0 {
		return within, "", nil
	}
	err = cmp.Or(opt.parent, opt.caller).checkApproved(&opt.stored)
	return ex.both(within, opt.stored.Within), opt.stored.Agent(), err
}

// checkApproved returns an error for a revision that an agent or a model made after the run, or one above
// it, asked for an approval in its iteration: who approved what follows has not seen it. What steps
// and models of these runs made themselves is theirs. The run may be nil.
func (r *liveRun) checkApproved(stored *revision.Stored) error {
	if stored.Within == nil {
		return nil
	}
	for up := r; up != nil; up = up.parent {
		up.mu.Lock()
		asked := up.folded.Asked
		up.mu.Unlock()
		own := stored.By == ownStep+string(up.begin.Sentinel) || stored.By == ownModel+string(up.begin.Sentinel)
		if asked.IsZero() || own || !stored.SavedAt.After(asked) {
			continue
		}
		return &abi.Error{
			Code: abi.Conflict, Permanent: true,
			Message: fmt.Sprintf("sentinel %q: %s made revision %d after run %s had asked for the approval of what follows", stored.ID, cmp.Or(stored.By, "a model or an agent"), stored.Revision, up.id),
			Hint:    fmt.Sprintf("`sentinel diff %s` shows what changed; `sentinel retry %s` asks again", stored.ID, up.id),
		}
	}
	return nil
}

// named returns the definitions that {"$ref": id} means in a new run.
func (ex *Executor) named(opt startOptions) (map[sentinels.ID]journal.Value, error) {
	switch {
	case opt.parent != nil && !opt.commanded:
		return opt.parent.begin.Named, nil
	case len(opt.Named) == 0:
		return opt.named, nil
	}
	kept := map[sentinels.ID]journal.Value{}
	for id, def := range opt.Named {
		raw, err := json.Marshal(def)
		if err != nil {
			return nil, err
		}
		if kept[id], err = ex.svc.Values.Definition(raw); err != nil {
			return nil, err
		}
	}
	return kept, nil
}

// Workspace returns the absolute path of the folder that a run of def works in: the
// definition's workspace, relative to dir, or dir if it has none.
func Workspace(def *sentinels.Definition, dir string) (string, error) {
	return workspace(def.Workspace, dir)
}

func workspace(own, dir string) (string, error) {
	switch {
	case own == "":
	case filepath.IsAbs(own):
		dir = own
	default:
		dir = filepath.Join(dir, own)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("workspace %q: %w", dir, err)
	}
	return abs, nil
}

// inside reports whether a folder is another one or below it, links followed, and not in a hidden
// folder there: rules about files that steer tools, such as those in .git, go by their names in the
// workspace. One that does not exist is below nothing.
func inside(dir, of string) bool {
	if dir == of {
		return true
	}
	real, err := filepath.EvalSymlinks(dir)
	root, rootErr := filepath.EvalSymlinks(of)
	rel, relErr := filepath.Rel(root, real)
	if err != nil || rootErr != nil || relErr != nil || !filepath.IsLocal(rel) {
		return false
	}
	return !slices.ContainsFunc(strings.Split(rel, string(filepath.Separator)), func(part string) bool { return part != "." && strings.HasPrefix(part, ".") })
}

// fillInputs checks the given inputs against the definition and adds the defaults.
func fillInputs(def *sentinels.Definition, opt startOptions) (map[string]json.RawMessage, error) {
	for _, p := range def.CheckGiven(fmt.Sprintf("sentinel %q", def.ID), opt.Inputs, false) {
		e := &abi.Error{Code: abi.BadFields, Field: p.Path, Message: p.Message, Hint: p.Hint}
		switch p.Kind {
		case sentinels.KindUnknown:
			if opt.lenient {
				continue
			}
		case sentinels.KindMissing:
			e.Hint = "give it: --input " + p.Path + "=..."
			if opt.parent != nil {
				e.Hint = fmt.Sprintf(`give it in the step: "inputs": {%q: ...}`, p.Path)
			}
			if text := def.Inputs[p.Path].Description; text != "" {
				e.Hint += " (" + text + ")"
			}
		}
		return nil, e
	}
	inputs := map[string]json.RawMessage{}
	for name, in := range def.Inputs {
		if in.Default != nil {
			inputs[name] = in.Default
		}
	}
	maps.Copy(inputs, opt.Inputs)
	return inputs, nil
}

// NewRunID returns a new run id. Ids sort by their time of creation.
func NewRunID() sentinels.RunID { return sentinels.RunID(uuid.Must(uuid.NewV7()).String()) }

// newSeed returns a random seed.
func newSeed() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}
