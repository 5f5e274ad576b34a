package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sentinel-runtime/sentinel/host/client"
	"github.com/sentinel-runtime/sentinel/runtime"
)

// liveLogs shows what a run told, and with follow what it tells until it ends,
// through a server. The file of the log may be on another machine. limit is how
// many of the old events are shown, 0 for all; new ones are always shown.
func (a *app) liveLogs(ctx context.Context, s *session, info runtime.RunInfo, follow bool, limit int) error {
	follow = follow && !info.Status.Final()
	cursor := ""
	if follow {
		var err error
		// Before the log is read, so that nothing falls in between.
		if cursor, err = s.live.Cursor(ctx); err != nil {
			return err
		}
	}
	var events []loggedEvent
	for line, err := range s.live.Logs(ctx, info.ID, 0) {
		if err != nil {
			return err
		}
		if e, ok := readEvent(line); ok {
			events = append(events, e)
		}
		if limit > 0 && len(events) > 2*limit { // a long log need not be held
			events = append(events[:0], events[len(events)-limit:]...)
		}
	}
	if limit > 0 && len(events) > limit {
		events = events[len(events)-limit:]
	}
	show := a.logShower(info.ID)
	// What was shown from the log, with how often: two events can be the same to
	// the last digit of their time.
	told := map[string]int{}
	for _, e := range events {
		if err := show(e); err != nil {
			return err
		}
		told[printOf(e.Progress)]++
		if e.Event == runtime.OnRunEnd && e.Run == info.ID {
			return nil // it ended between the two questions
		}
	}
	if !follow {
		return nil
	}
	// The feed repeats what was told between the cursor and the end of the log.
	err := s.live.Watch(ctx, client.WatchOptions{Topics: []string{"run:" + string(info.ID)}, Cursor: cursor}, func(m client.Message) error {
		if m.Gap != nil {
			return a.gapInLogs(ctx, s, info)
		}
		e, ok := readEvent(m.Event)
		if !ok || e.Event == runtime.OnText { // the log has no pieces of text either
			return nil
		}
		if key := printOf(e.Progress); told[key] > 0 {
			told[key]--
			return nil
		}
		if err := show(e); err != nil {
			return err
		}
		if e.Event == runtime.OnRunEnd && e.Run == info.ID {
			return errRunOver
		}
		return nil
	})
	if errors.Is(err, errRunOver) {
		return nil
	}
	return err
}

// gapInLogs says that something is missing, and ends with a run whose end may
// have been among it.
func (a *app) gapInLogs(ctx context.Context, s *session, info runtime.RunInfo) error {
	a.warn(fmt.Sprintf("some of what run %s told is missing here; `sentinel logs` has it", info.ID))
	var now runtime.RunInfo
	if err := s.call(ctx, "sentinel/status", map[string]any{"run": info.ID}, &now); err == nil && now.Status.Final() {
		return errRunOver
	}
	return nil
}

// printOf is what is the same of an event in the log and in the feed. Both write
// the same Go value, but only the log has it byte by byte as it was written.
func printOf(p runtime.Progress) string {
	text, err := json.Marshal(p)
	if err != nil {
		return "" // what was decoded from JSON is JSON again
	}
	return string(text)
}
