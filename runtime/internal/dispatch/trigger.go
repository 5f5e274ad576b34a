package dispatch

import (
	"context"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/eventlog"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// The backoff of a trigger whose kind failed: it doubles each time, and begins
// again after the trigger ran for maxBackoff.
const (
	minBackoff = time.Second
	maxBackoff = 5 * time.Minute
)

// An armedTrigger is one trigger of an [armedSentinel]. The fields of the last
// group are guarded by the sentinel's lock.
type armedTrigger struct {
	s        *armedSentinel
	index    int // in the definition
	name     string
	def      sentinels.Trigger
	common   triggers.Common
	armed    triggers.Armed     // nil if it could not be armed
	gone     bool               // edited away; only a firing of it is left
	made     eventlog.Chain     // of the run that made the trigger, see the function made
	stop     context.CancelFunc // ends run; nil before
	unwaited int                // outcomes since a commit was waited for; owned by the goroutine that runs it
	reader   *eventReader

	rec     record
	pending *pendingFiring // debounced
	timer   *time.Timer    // of pending
	broken  string         // why it does not run
	trouble string         // why its newest firing could not be used
}

// arm prepares the trigger. A problem is shown and does not affect the other
// triggers.
func (t *armedTrigger) arm(r Revision, def *sentinels.Definition, starting bool) {
	if err := t.tryArm(r, def, starting); err != nil {
		t.broken = err.Error()
	}
}

func (t *armedTrigger) tryArm(r Revision, def *sentinels.Definition, starting bool) error {
	opt := &t.s.d.opt
	kind, ok := opt.Kinds.Kind(t.def.Type)
	if !ok {
		return fmt.Errorf("this host has no triggers of type %q", t.def.Type)
	}
	// Another version of this host may have saved the definition, so it is checked
	// again.
	err := opt.Kinds.Check(t.def)
	if err != nil {
		return err
	}
	if t.common, err = triggers.ReadCommon(t.def); err != nil {
		return err
	}
	dir, err := opt.Workspace(r, def)
	if err != nil {
		return err
	}
	t.reader = newEventReader(t)
	t.armed, err = kind.Arm(t.def, triggers.Env{
		Sentinel: t.s.id, Name: t.name, Revision: t.s.revision, Workspace: dir,
		Since: t.rec.Since, Positions: []uint64{t.rec.Position, t.rec.Runs}, Starting: starting, State: t.rec.State,
		Now: opt.Now, Events: t.reader, Secret: opt.Secret,
		Logger: t.s.d.log.With("sentinel", t.s.id, "trigger", t.name),
	})
	return err
}

// ended returns why the trigger starts nothing any more, "" if it does. The caller holds the
// sentinel's lock.
func (t *armedTrigger) ended() string { return t.common.Ended(t.rec.Started, t.s.d.opt.Now()) }

// stopIfEnded ends run if the trigger has ended, and reports whether it has.
func (t *armedTrigger) stopIfEnded() bool {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if t.ended() == "" {
		return false
	}
	t.stop()
	return true
}

// run runs the trigger until ctx ends or it has ended. If its kind fails, that is shown, and it
// runs again after a backoff.
func (t *armedTrigger) run(ctx context.Context) {
	ctx, t.stop = context.WithCancel(ctx)
	defer t.stop()
	if t.stopIfEnded() {
		return
	}
	for backoff := minBackoff; ; backoff = min(2*backoff, maxBackoff) {
		begun := time.Now()
		err := t.armed.Run(ctx, t.fire)
		if ctx.Err() != nil || err == nil {
			return // without an error the kind has nothing more to fire
		}
		if time.Since(begun) >= maxBackoff {
			backoff = minBackoff
		}
		t.s.mu.Lock()
		t.broken = err.Error() // until it fires again
		t.s.mu.Unlock()
		t.s.d.log.Warn("trigger failed, it is run again", "sentinel", t.s.id, "trigger", t.name, "in", backoff, "error", err)
		if !sleep(ctx, backoff) {
			return
		}
	}
}

// sleep waits for a duration; false means that ctx ended before.
func sleep(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// keepMark stores how far the trigger has read a log, if that is at least
// distance events beyond what is stored. No caller waits for the commit.
func (t *armedTrigger) keepMark(log int, distance uint64) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if t.reader == nil {
		return
	}
	m, far := t.reader.marked(log, *t.rec.read(log), distance)
	if !far {
		return
	}
	*t.rec.read(log) = m
	put := encodePut(bucketTriggers, triggerKey(t.s.id, t.name), t.rec)
	t.s.newest = t.s.d.opt.Store.Enqueue(store.Batch{Puts: []store.Put{put}, Lazy: true})
}
