package execution

import (
	"context"
	"fmt"
	"slices"

	"github.com/sentinel-runtime/sentinel/runtime/internal/execution/step"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A start of an agent, or of models, is refused while they have Limits.AgentRuns unfinished runs, see
// [Executor.admitHeld]. One such start can lead to any number of runs, as each run may start
// children and each of these as many again. Therefore the step that starts a child waits while that many are
// active. The child does not exist before: neither a record nor its definition takes memory.
//
// A run that waits for children keeps none of them from beginning. Otherwise a tree with more levels than
// places would wait for itself. Beyond the limit, as many runs as a quarter of it may execute, and the deepest
// child begins first, so that runs end before others begin. The active runs are therefore at most the limit, and
// a quarter of it for each level of nesting.

// A share is what the active runs of an agent, or of models, are together. It is guarded by Executor.mu.
type share struct {
	active  int // runs, and children that are about to begin
	blocked int // runs of these that have active children, or wait for one to begin, or for their own place
	waiting []*childStart
	asked   int // approvals that a person has to decide about
}

// A childStart is a child that waits until it may begin.
type childStart struct {
	parent *liveRun
	may    chan struct{} // closed when it may begin
}

// shareOf returns for whom a run counts: for the agent, or the models, of the nearest run of theirs to the root.
func shareOf(r *liveRun) string {
	if r.parent != nil && r.parent.share != "" {
		return r.parent.share
	}
	return emitsFor(r.begin.As, r.begin.Within != nil)
}

// joinShare counts a run that has become active. The caller holds ex.mu.
func (ex *Executor) joinShare(r *liveRun) {
	if r.share == "" {
		return
	}
	if ex.shares[r.share] == nil {
		ex.shares[r.share] = &share{}
	}
	ex.shares[r.share].active++
	if r.parent != nil {
		ex.block(r.parent, 1)
	}
}

// leaveShare is the opposite of joinShare, for a run that is still among the active ones. The caller holds ex.mu.
func (ex *Executor) leaveShare(r *liveRun) {
	if r.share == "" {
		return
	}
	s := ex.shares[r.share]
	s.active--
	if r.waitsFor > 0 {
		s.blocked--
	}
	if r.parent != nil {
		ex.block(r.parent, -1)
	}
}

// block adds n to what a run waits for: its active children, those that wait to begin, and its own place. The
// caller holds ex.mu.
func (ex *Executor) block(r *liveRun, n int) {
	before := r.waitsFor > 0
	r.waitsFor += n
	after := r.waitsFor > 0
	s := ex.shares[r.share]
	if s == nil || before == after || ex.runs[r.id] != r {
		return
	}
	if before {
		s.blocked--
		return
	}
	s.blocked++
	ex.beginChildren(r.share)
}

// mayBegin reports whether a run may start a child now. The caller holds ex.mu.
func (ex *Executor) mayBegin(parent *liveRun) bool {
	s, limits := ex.shares[parent.share], ex.svc.Limits
	if s.active < limits.AgentRuns {
		return true
	}
	return s.active-s.blocked < max(limits.AgentRuns/4, 1) && parent.children.active < limits.Children
}

// beginChildren lets the children of a share begin that may. The caller holds ex.mu.
func (ex *Executor) beginChildren(by string) {
	s := ex.shares[by]
	for s != nil {
		var next *childStart
		for _, w := range s.waiting {
			if ex.mayBegin(w.parent) && (next == nil || len(w.parent.begin.Ancestry) > len(next.parent.begin.Ancestry)) {
				next = w
			}
		}
		if next == nil {
			break
		}
		s.waiting = slices.DeleteFunc(s.waiting, func(w *childStart) bool { return w == next })
		s.active++
		ex.block(next.parent, -1)
		close(next.may)
	}
	if s != nil && s.active == 0 && len(s.waiting) == 0 {
		delete(ex.shares, by)
	}
}

// AdmitChild implements [step.Children].
func (r *liveRun) AdmitChild(key string) (begun func(), ok bool, err error) {
	if r.share == "" {
		return func() {}, true, nil
	}
	r.ex.mu.Lock()
	defer r.ex.mu.Unlock()
	if s := r.ex.shares[r.share]; s != nil && r.ex.mayBegin(r) {
		s.active++
		return r.begun, true, nil
	}
	_, ok, err = r.ex.findStartedLocked(key)
	return func() {}, ok, err
}

// begun ends the count of a child that was about to begin: it is active now and counts itself, or was not started.
func (r *liveRun) begun() {
	r.ex.mu.Lock()
	defer r.ex.mu.Unlock()
	if s := r.ex.shares[r.share]; s != nil {
		s.active--
		r.ex.beginChildren(r.share)
	}
}

// AwaitChildStart implements [step.Children].
func (r *liveRun) AwaitChildStart(ctx context.Context) (begun func(), err error) {
	ex, w := r.ex, &childStart{parent: r, may: make(chan struct{})}
	ex.mu.Lock()
	s := ex.shares[r.share]
	if s == nil || ex.runs[r.id] != r {
		ex.mu.Unlock()
		return nil, step.ErrShutdown
	}
	s.waiting = append(s.waiting, w)
	ex.block(r, 1)
	ex.beginChildren(r.share)
	ex.mu.Unlock()
	select {
	case <-w.may:
		return r.begun, nil
	case <-ctx.Done():
	}
	ex.mu.Lock()
	may := !slices.Contains(s.waiting, w)
	if !may {
		s.waiting = slices.DeleteFunc(s.waiting, func(other *childStart) bool { return other == w })
		ex.block(r, -1)
	}
	ex.mu.Unlock()
	if may {
		r.begun()
	}
	return nil, context.Cause(ctx)
}

// admitQuestion counts an approval that the run asks for, until leave is called. It is refused while its agent, or models,
// have asked for as many as the limit says: a run may have thousands of branches, and a person reads each of them. One that
// the last process asked for already is admitted.
func (r *liveRun) admitQuestion(again bool) (leave func(), err error) {
	ex, most := r.ex, r.ex.svc.Limits.AgentQuestions
	ex.mu.Lock()
	defer ex.mu.Unlock()
	s := ex.shares[r.share]
	if s == nil { // of a person
		return func() {}, nil
	}
	if s.asked >= most && !again {
		return nil, &abi.Error{
			Code: abi.Limit, Permanent: true, Message: fmt.Sprintf("%s waits for %d approvals, at most %d (limits.agentQuestions)", r.share, s.asked, most),
			Hint: "wait until a person has decided about some (sentinel inbox), stop runs that are not needed, or have a person raise limits.agentQuestions",
		}
	}
	s.asked++
	return func() {
		ex.mu.Lock()
		defer ex.mu.Unlock()
		s.asked--
	}, nil
}

// ChildWait implements [step.Children].
func (r *liveRun) ChildWait() string {
	return fmt.Sprintf("%s has %d active runs, at most %d (limits.agentRuns)", r.share, r.ex.activeOf(r.share), r.ex.svc.Limits.AgentRuns)
}

// activeOf returns the number of active runs that count for an agent, or for models.
func (ex *Executor) activeOf(by string) int {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	if s := ex.shares[by]; s != nil {
		return s.active
	}
	return 0
}
