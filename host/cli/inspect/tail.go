package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/client"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// tailCommand is `events` that can follow. Only a server publishes events: it
// has the live feed. Asking a store again and again would keep it from processes that
// wants to work with it, since one process at a time can have it open.
func (a verbs) tailCommand() *cobra.Command {
	var follow bool
	var after string
	var limit int
	c := &cobra.Command{
		Use: "tail [PATTERN]", Short: "Show the newest events, and with -f those that come",
		Long:    "In PATTERN, * stands for one part of a name and ** at the end for the rest.",
		Example: "  sentinel events tail 'git:**' -f",
		Args:    app.RangeArgs(0, 1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			pattern := "**"
			if len(args) > 0 {
				pattern = args[0]
			}
			switch {
			case limit < 0 || limit > 1000:
				return app.NewUsageError(fmt.Sprintf("--limit %d is not between 0 and 1000", limit), "")
			case after != "" && !follow:
				return app.NewUsageError("--after needs -f: it is where to go on", "")
			}
			s, err := a.Connect(cmd.Context(), true)
			if err != nil {
				return err
			}
			defer a.CloseSession(s, &err)
			if follow && s.Process == nil && (s.Serves() || s.Owner.AcceptsRuns) {
				t := tail{app: a, s: s, cursor: after, seen: map[string]bool{}}
				return t.run(cmd.Context(), pattern, limit)
			}
			var out tailed
			if limit > 0 {
				if err := s.Call(cmd.Context(), "events/tail", map[string]any{"pattern": pattern, "limit": limit}, &out); err != nil {
					return err
				}
			}
			if limit > 0 || a.Flags.Output != output.FormatTable {
				err = a.showEvents(out.Events, pattern)
			}
			if err != nil || !follow {
				return err
			}
			a.Info("no server runs here, so there is nothing to follow: this is what the log has")
			return nil
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what comes, until Ctrl-C")
	c.Flags().StringVar(&after, "after", "", "with -f: go on behind this place, which an earlier one told at its end")
	c.Flags().IntVar(&limit, "limit", 10, "first the newest so many of the log")
	return c
}

// A tail follows the log of events through a server. One goroutine uses it.
type tail struct {
	app    verbs
	s      *app.Session
	cursor string
	seen   map[string]bool // ids that were shown, as far as they may come again
}

// run shows the log and then the feed. The feed's place is taken first, so that
// what comes in between is in both and is shown once.
func (t *tail) run(ctx context.Context, pattern string, limit int) (err error) {
	if t.cursor == "" {
		if t.cursor, err = t.s.Cursor(ctx); err != nil {
			return err
		}
		if err := t.before(ctx, pattern, limit); err != nil {
			return err
		}
	}
	// Watch reconnects after a broken connection, at the same position.
	err = t.s.Watch(ctx, t.s.WatchOptions(t.cursor, "events:"+pattern), t.take)
	if errors.Is(err, app.ErrInterrupted) {
		t.app.Info("go on with --after %s", t.cursor)
	}
	return err
}

// before shows what the log has.
func (t *tail) before(ctx context.Context, pattern string, limit int) error {
	if limit == 0 {
		return nil
	}
	var out tailed
	if err := t.s.Call(ctx, "events/tail", map[string]any{"pattern": pattern, "limit": limit}, &out); err != nil {
		return err
	}
	for _, raw := range out.Events {
		if err := t.show(raw); err != nil {
			return err
		}
	}
	return nil
}

// take shows one message of the feed.
func (t *tail) take(m client.Message) error {
	t.cursor = m.Cursor
	switch {
	case m.Gap == nil:
		return t.show(m.Event)
	// The number is unknown: cursors are of one process, and that one
	// has ended. The log has them all.
	case m.Gap.Lost < 0:
		t.app.Warn("events may be missing here: the server was restarted")
	case m.Gap.Lost > 0:
		t.app.Warn(fmt.Sprintf("up to %s missing here; `sentinel events` has them", output.Plural(int(m.Gap.Lost), "event is", "events are")))
	}
	return nil
}

// show writes an event, as it is for programs or on a line for people.
func (t *tail) show(raw json.RawMessage) error {
	var e sentinels.Event
	if err := json.Unmarshal(raw, &e); err != nil {
		return fmt.Errorf("read event: %w", err)
	}
	if t.seen[e.ID] {
		return nil
	}
	if len(t.seen) < 1000 { // no more than the log was asked for, so the rest need not be kept
		t.seen[e.ID] = true
	}
	if t.app.Flags.Output != output.FormatTable {
		return t.app.WriteLine(raw)
	}
	p := t.app.PaintOut
	parts := output.Row{p.Dim(output.LocalClock(e.Time)), p.Strong(output.Escape(e.Name)), p.Dim(output.Clip(e.Source, 40)), output.ClipJSON(e.Data, 200)}
	return t.app.Out.Printf("%s\n", termtext.Text(strings.TrimRight(string(termtext.Join(parts, "  ")), " ")))
}
