package runtime

import (
	"fmt"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// activeAbove returns the nearest active run above r, nil if there is none. r is
// one of its children, also when the run that started r has ended since: so a
// child cannot end early to leave behind runs that are not counted, and a run
// that is resumed counts the same runs as before. rt.mu is held.
func (rt *Runtime) activeAbove(r *run) *run {
	for up := r.parent; up != nil; up = up.parent {
		if rt.runs[up.id] == up {
			return up
		}
	}
	return nil
}

// checkChildren returns an error if r, which is about to begin, would be one
// child too many. rt.mu is held until r is one of rt.runs, so that steps which
// start children at the same time do not pass the limit together.
func (rt *Runtime) checkChildren(r *run) error {
	up, limit := rt.activeAbove(r), rt.limits.Children
	if up == nil || up.children < limit {
		return nil
	}
	return &abi.Error{
		Code:    abi.Limit,
		Message: fmt.Sprintf("children: run %s has %d active child runs, the limit is %d", up.id, up.children, limit),
		Hint:    "start fewer at once, or wait for some of them to end; active runs that an ended child started count too",
	}
}

// removeLocked takes r, which has ended, out of the active runs. Its children
// become those of the run above it. rt.mu is held.
func (rt *Runtime) removeLocked(r *run) {
	delete(rt.runs, r.id)
	if up := rt.activeAbove(r); up != nil {
		up.children += r.children - 1
	}
}
