package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// How long a trigger that failed rests before it is run again: twice as long
// each time, from the beginning after one that held for the longest rest.
const (
	firstRest   = time.Second
	longestRest = 5 * time.Minute
)

// An armedTrigger is one trigger of an [armedSentinel]. What is below the line
// is guarded by the sentinel's lock.
type armedTrigger struct {
	s        *armedSentinel
	index    int // in the definition
	name     string
	def      sentinels.Trigger
	common   triggers.Common
	armed    triggers.Armed // nil if it could not be armed
	gone     bool           // edited away; only a fire of it is left
	unwaited int            // outcomes since the disk was waited for; of the goroutine that runs it
	reader   *eventReader

	rec     triggerRecord
	pending *pendingFire // waits for quiet
	timer   *time.Timer  // of pending
	broken  string       // why it does not run
	trouble string       // why its newest fire could not be used
}

// arm prepares the trigger as its kind requires. A problem is shown and keeps
// the other triggers from nothing.
func (t *armedTrigger) arm(def *sentinels.Definition, starting bool) {
	if err := t.tryArm(def, starting); err != nil {
		t.broken = err.Error()
	}
}

func (t *armedTrigger) tryArm(def *sentinels.Definition, starting bool) error {
	rt := t.s.a.rt
	kind, ok := rt.opt.Triggers.Kind(t.def.Type)
	if !ok {
		return fmt.Errorf("this host has no triggers of type %q", t.def.Type)
	}
	err := rt.opt.Triggers.Check(t.def)
	if err != nil {
		return err
	}
	// A definition may be older than this host's idea of its kinds, so it is
	// checked here too and not only when it was saved.
	if t.common, err = triggers.ReadCommon(t.def); err != nil {
		return err
	}
	dir, err := workspace(def, StartOptions{Workspace: rt.opt.Workspace})
	if err != nil {
		return err
	}
	secret := rt.opt.Secret
	if secret == nil {
		secret = func(string) (string, bool) { return "", false }
	}
	t.reader = &eventReader{t: t, mark: t.rec.Read}
	t.armed, err = kind.Arm(t.def, triggers.Env{
		Sentinel: t.s.id, Name: t.name, Revision: t.s.revision, Workspace: dir,
		Since: t.rec.Since, Position: t.rec.Position, Starting: starting, State: t.rec.State,
		Now: t.s.a.rt.calendar.now, Events: t.reader, Secret: secret,
		Logger: rt.log.With("sentinel", t.s.id, "trigger", t.name),
	})
	return err
}

// run has the trigger fire until ctx ends. One that fails is shown and run again
// after a rest.
func (t *armedTrigger) run(ctx context.Context) {
	for rest := firstRest; ; rest = min(2*rest, longestRest) {
		begun := time.Now()
		err := t.armed.Run(ctx, t.fire)
		if ctx.Err() != nil || err == nil {
			return // without an error it has fired all that it ever will
		}
		if time.Since(begun) >= longestRest {
			rest = firstRest
		}
		t.s.mu.Lock()
		t.broken = err.Error() // until it fires again
		t.s.mu.Unlock()
		t.s.a.rt.log.Warn("trigger failed, it is run again", "sentinel", t.s.id, "trigger", t.name, "in", rest, "error", err)
		timer := time.NewTimer(rest)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// keepMark keeps how far the trigger has read the log of events, if that is so
// much further than the stored state. No caller waits for it.
func (t *armedTrigger) keepMark(further uint64) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if t.reader == nil {
		return
	}
	m, far := t.reader.marked(t.rec.Read, further)
	if !far {
		return
	}
	t.rec.Read = m
	put := encodePut(bucketTriggers, triggerKey(t.s.id, t.name), t.rec)
	t.s.newest = t.s.a.rt.db.Enqueue(store.Batch{Puts: []store.Put{put}, Lazy: true})
}

// detail says in words for people what the trigger waits for.
func detail(t sentinels.Trigger) string {
	switch {
	case t.CronExpression != "":
		return t.CronExpression
	case t.Event != "":
		return t.Event
	}
	var o struct {
		Paths []string `json:"paths"`
	}
	if json.Unmarshal(t.Options, &o) != nil { // of a kind that has other paths
		return ""
	}
	return strings.Join(o.Paths, " ")
}
