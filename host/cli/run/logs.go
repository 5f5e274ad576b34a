package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/client"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// logsCommand shows what the commands and models of a run have printed, or with --events the
// progress that was reported. The journal, which trace shows, is the truth. Without a run it shows the log
// of the server.
func (a verbs) logsCommand() *cobra.Command {
	var want outputWanted
	var events bool
	var limit int
	c := &cobra.Command{
		Use: "logs [RUN|NAME]", Short: "Show what the commands of a run have printed, and what its models said",
		Long: "Shows the output of each command under a heading with its step and attempt, both streams in the order of arrival.\n" +
			"Bytes are written as they came, except to a terminal. With --step and --attempt there is no heading.\n" +
			"Without a run it shows the log of the server of this project, which needs --log-file or the setting logs.file.",
		Example: "  sentinel logs -f                       # the log of the server\n  sentinel logs nightly\n  sentinel logs nightly --step build --attempt 2 > build.log\n  sentinel logs nightly -f --tail 20",
		Args:    app.RangeArgs(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if min(limit, want.tail, want.attempt, want.iteration) < 0 {
				return app.NewUsageError("a number is below 0", "")
			}
			if len(args) == 0 {
				opt, err := serverLogOptions(cmd, want)
				if err != nil {
					return err
				}
				return a.serverLog(cmd.Context(), opt)
			}
			if events || a.Flags.Output == output.FormatJSONL {
				return a.logs(cmd.Context(), args[0], want.follow, limit)
			}
			return a.outputs(cmd.Context(), args[0], want)
		},
	}
	c.Flags().BoolVarP(&want.follow, "follow", "f", false, "continue until the run ends, or with the log of the server until Ctrl-C; what commands print at the same time is shown one after the other")
	c.Flags().StringVar(&want.step, "step", "", "only the step with this id, address or execution path")
	c.Flags().IntVar(&want.iteration, "iteration", 0, "only this iteration")
	c.Flags().IntVar(&want.attempt, "attempt", 0, "only this attempt of the steps")
	c.Flags().StringVar(&want.stream, "stream", "", "only stdout or stderr")
	c.Flags().IntVar(&want.tail, "tail", 0, "only the last so many lines of each command, or of the log of the server")
	c.Flags().BoolVarP(&want.times, "times", "t", false, "begin each line with its time, in UTC")
	c.Flags().BoolVar(&events, "events", false, "show the progress of the run, as \"run\" showed it live")
	c.Flags().IntVar(&limit, "limit", 0, "with --events: only the newest so many (default: all)")
	return c
}

// logs shows the log of a run and, with follow, its progress until it ends. limit is
// how many entries of the log are shown, 0 for all.
func (a verbs) logs(ctx context.Context, word string, follow bool, limit int) (err error) {
	s, err := a.Connect(ctx, true)
	if err != nil {
		return err
	}
	defer a.CloseSession(s, &err)
	info, err := a.FindRun(ctx, s, word, true)
	if err != nil {
		return err
	}
	follow = follow && info.Live && !info.Status.Final()
	cursor := ""
	if follow { // before the log is read, so that no progress is missed
		if cursor, err = s.Cursor(ctx); err != nil {
			return err
		}
	}
	events, err := readLog(ctx, s, info.ID, limit)
	if err != nil {
		return err
	}
	if len(events) == 0 && !follow {
		return app.NotFound("", "run %s has no log", info.ID)
	}
	l := &logFollower{app: a, session: s, run: info, show: a.logShower(info.ID), shown: map[string]int{}}
	for _, e := range events {
		if err := l.show(e); err != nil {
			return err
		}
		l.shown[fingerprint(e.Progress)]++
		if e.Event == runtime.OnRunEnd && e.Run == info.ID {
			return nil
		}
	}
	if !follow {
		return nil
	}
	return l.follow(ctx, cursor)
}

// readLog returns the newest entries of a run's log, limit 0 for all of them.
func readLog(ctx context.Context, s *app.Session, id sentinels.RunID, limit int) (events []loggedEvent, err error) {
	for line, err := range s.Logs(ctx, id, 0) {
		if err != nil {
			return nil, err
		}
		if e, ok := readEvent(bytes.TrimSpace(line)); ok {
			events = append(events, e)
		}
		if limit > 0 && len(events) > 2*limit { // the older part of a long log is not kept
			events = append(events[:0], events[len(events)-limit:]...)
		}
	}
	if limit > 0 && len(events) > limit {
		events = events[len(events)-limit:]
	}
	return events, nil
}

// A logFollower shows the progress of a run that comes after its log was read.
type logFollower struct {
	app     verbs
	session *app.Session
	run     runtime.RunInfo
	show    func(loggedEvent) error
	// shown counts the entries that were shown from the log, by fingerprint: two may be
	// the same to the last digit of their time. The feed repeats those that were written
	// between the cursor and the end of the log.
	shown map[string]int
}

func (l *logFollower) follow(ctx context.Context, cursor string) error {
	opt := l.session.WatchOptions(cursor, "run:"+string(l.run.ID))
	err := l.session.Watch(ctx, opt, func(m client.Message) error { return l.take(ctx, m) })
	switch {
	case errors.Is(err, errRunEnded):
		return nil
	case l.app.hostEnded(l.session, err):
		return nil
	}
	return err
}

// hostEnded reports whether an error means that the process which executed the run, and is not a server,
// has ended, and says so.
func (a verbs) hostEnded(s *app.Session, err error) bool {
	ended := abi.CodeOf(err) == abi.Unavailable && !s.Serves()
	if ended {
		a.Info("the process that executed the run has ended")
	}
	return ended
}

func (l *logFollower) take(ctx context.Context, m client.Message) error {
	if m.Gap != nil {
		return l.gap(ctx)
	}
	e, ok := readEvent(m.Event)
	if !ok || e.Event.Partial() { // the log has no pieces of text either
		return nil
	}
	if key := fingerprint(e.Progress); l.shown[key] > 0 {
		l.shown[key]--
		return nil
	}
	if err := l.show(e); err != nil {
		return err
	}
	if e.Event == runtime.OnRunEnd && e.Run == l.run.ID {
		return errRunEnded
	}
	return nil
}

// gap reports that progress is missing. The end of the run may be among it.
func (l *logFollower) gap(ctx context.Context) error {
	l.app.Warn(fmt.Sprintf("some progress of run %s is missing here; `sentinel logs` has it", l.run.ID))
	if now, err := l.session.RunInfo(ctx, l.run.ID); err == nil && now.Status.Final() {
		return errRunEnded
	}
	return nil
}

// fingerprint is the same for an entry of the log and for the same progress in the
// feed, which differ in bytes.
func fingerprint(p runtime.Progress) string {
	text, err := json.Marshal(p)
	if err != nil {
		return "" // it was decoded from JSON
	}
	return string(text)
}

// logShower shows events in the form that was asked for, on standard output.
func (a verbs) logShower(id sentinels.RunID) func(loggedEvent) error {
	if a.Flags.Output != output.FormatTable {
		return func(e loggedEvent) error {
			return a.Out.JSON(append(e.raw, '\n'))
		}
	}
	l := lines{app: a, paint: a.PaintOut, root: id}
	at := func(e loggedEvent) termtext.Text {
		return a.PaintOut.Dim(output.WithZone(e.Time.Local(), "15:04:05.000"))
	}
	return func(e loggedEvent) error {
		for _, s := range l.of(e.Progress) {
			if err := a.Out.Printf("%s %s\n", at(e), s); err != nil {
				return err
			}
		}
		if e.Event == runtime.OnRunEnd && e.Run == id {
			end := output.Status(a.PaintOut, e.Status)
			if e.Reason != "" {
				end += "  reason " + output.Escape(e.Reason)
			}
			for _, s := range l.failure(end, e.Progress) {
				if err := a.Out.Printf("%s %s\n", at(e), s); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

type loggedEvent struct {
	runtime.Progress
	raw []byte
}

// readEvent decodes a line of a log; ok is false for one that a crash damaged.
func readEvent(line []byte) (e loggedEvent, ok bool) {
	p, err := readProgress(line)
	return loggedEvent{p, line}, err == nil && p.Event != ""
}
