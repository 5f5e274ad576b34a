package execution

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/sentinel-runtime/sentinel/runtime/internal/execution/step"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// waitGraph has an edge from each run to the runs whose end its steps wait for. It has no
// cycle, because the edge that would close one is refused: none of the runs could end.
type waitGraph struct {
	mu    sync.Mutex
	edges map[sentinels.RunID]map[sentinels.RunID]int // number of steps that wait
}

// add adds an edge, or returns an error if to is from or waits for it.
func (g *waitGraph) add(from, to sentinels.RunID) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if circle := g.path(to, from, map[sentinels.RunID]bool{}); circle != nil {
		names := []string{string(from)}
		for _, id := range circle {
			names = append(names, string(id))
		}
		return cannotAwait(from, to, "they would wait for each other: "+strings.Join(names, " waits for "))
	}
	if g.edges == nil {
		g.edges = map[sentinels.RunID]map[sentinels.RunID]int{}
	}
	if g.edges[from] == nil {
		g.edges[from] = map[sentinels.RunID]int{}
	}
	g.edges[from][to]++
	return nil
}

// remove removes what add added.
func (g *waitGraph) remove(from, to sentinels.RunID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.edges[from][to]--; g.edges[from][to] == 0 {
		delete(g.edges[from], to)
	}
	if len(g.edges[from]) == 0 {
		delete(g.edges, from)
	}
}

// path returns the runs on a path, nil if there is none. The caller holds g.mu.
func (g *waitGraph) path(from, to sentinels.RunID, seen map[sentinels.RunID]bool) []sentinels.RunID {
	if from == to {
		return []sentinels.RunID{to}
	}
	if seen[from] {
		return nil
	}
	seen[from] = true
	for next := range g.edges[from] {
		if rest := g.path(next, to, seen); rest != nil {
			return append([]sentinels.RunID{from}, rest...)
		}
	}
	return nil
}

func cannotAwait(from, to sentinels.RunID, reason string) error {
	return &abi.Error{
		Code: abi.Conflict, Permanent: true, Field: "run",
		Message: fmt.Sprintf("run %s cannot wait for run %s: %s", from, to, reason),
	}
}

// AwaitFrom is [Executor.Await] for a step of the run from. The run cannot wait for
// itself, for a run above it, which may wait for it, or in a circle. It waits without the
// execution slot of the host call.
func (ex *Executor) AwaitFrom(ctx context.Context, from, id sentinels.RunID) (run.Result, error) {
	var res waitedResult
	wait := func() (err error) {
		res, err = ex.awaitFrom(ctx, from, id)
		return err
	}
	if caller := step.CallerOf(ctx); caller != nil {
		err := caller.Outside(ctx, wait)
		return res.Result, err
	}
	err := wait()
	return res.Result, err
}

// StopAbandoned stops a child that a host call of the run from has started and awaited, after ctx,
// the context of the call, has ended. A child whose parent this process only detaches from
// continues with it.
func (ex *Executor) StopAbandoned(ctx context.Context, from, id sentinels.RunID) {
	cause := context.Cause(ctx)
	if r := ex.live(id); r != nil && r.parent != nil && r.parent.id == from && cause != nil && !errors.Is(cause, step.ErrShutdown) {
		ex.stopTree(id, cause)
	}
}

func (ex *Executor) awaitFrom(ctx context.Context, from, id sentinels.RunID) (waitedResult, error) {
	r := ex.live(from)
	if r == nil {
		return ex.await(ctx, id, nil)
	}
	for up := r.parent; up != nil; up = up.parent {
		if up.id == id {
			return waitedResult{}, cannotAwait(from, id, "it is one of the runs that started this one")
		}
	}
	if err := ex.waits.add(from, id); err != nil {
		return waitedResult{}, err
	}
	defer ex.waits.remove(from, id)
	return ex.await(ctx, id, r)
}

// AwaitRun implements [step.Children].
func (r *liveRun) AwaitRun(ctx context.Context, id sentinels.RunID) (run.Result, error) {
	res, err := r.ex.awaitFrom(ctx, r.id, id)
	if err == nil && res.detached {
		err = step.ErrShutdown
	}
	return res.Result, err
}
