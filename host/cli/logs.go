package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// lookAgain is how often a log is read that somebody follows. A file has no way
// to call us that works on every file system.
const lookAgain = 200 * time.Millisecond

// logsCommand shows the file that the host keeps beside the store. It tells what
// was told; what is true is in the journal, and trace shows that.
func (a *app) logsCommand() *cobra.Command {
	var follow bool
	var limit int
	c := &cobra.Command{
		Use: "logs RUN|NAME", Short: "Show what a run told, as `run` showed it live",
		Args: exactly("RUN or NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 0 {
				return &usageError{fmt.Sprintf("--limit %d is below 0", limit), ""}
			}
			return a.logs(cmd.Context(), args[0], follow, limit)
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the run ends")
	c.Flags().IntVar(&limit, "limit", 0, "only the newest so many events (default: all)")
	return c
}

// logs reads the log of a run and, to follow it, what is written behind. It ends
// with the run, or when nobody carries the run out any more.
func (a *app) logs(ctx context.Context, word string, follow bool, limit int) error {
	s, err := a.connect(ctx, true)
	if err != nil {
		return err
	}
	info, err := a.target(ctx, s, word, true)
	if err == nil && s.live != nil && (follow || s.away) {
		err = a.liveLogs(ctx, s, info, follow, limit)
		return errors.Join(err, s.close())
	}
	state := s.state
	// The file is all that is needed from here on: whoever wants the store may
	// have it.
	if err := errors.Join(err, s.close()); err != nil {
		return err
	}
	r := &logReader{path: filepath.Join(state, "logs", string(info.ID)+".jsonl")}
	events, err := r.more()
	if errors.Is(err, fs.ErrNotExist) {
		if info.Live && follow {
			err = nil // it is about to tell its first
		} else {
			return notFound("", "run %s has no log", info.ID)
		}
	}
	if err != nil {
		return err
	}
	if limit > 0 && len(events) > limit {
		events = events[len(events)-limit:]
	}
	show := a.logShower(info.ID)
	over := info.Status.Final() || !info.Live
	for {
		for _, e := range events {
			if err := show(e); err != nil {
				return err
			}
			over = over || e.Event == runtime.OnRunEnd && e.Run == info.ID
		}
		if !follow || over {
			return nil
		}
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if events, err = r.more(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if len(events) == 0 && a.abandoned(ctx, info.ID) {
			if ctx.Err() != nil { // an interrupted connection says nothing about the run
				return context.Cause(ctx)
			}
			a.say("the process that executed the run has ended")
			return nil
		}
	}
}

// abandoned reports whether no process executes the run any more.
func (a *app) abandoned(ctx context.Context, id sentinels.RunID) bool {
	s, err := a.dial(ctx)
	if err != nil {
		return true
	}
	defer s.close()
	var info runtime.RunInfo
	err = s.call(ctx, "sentinel/status", map[string]any{"run": id}, &info)
	return err == nil && !info.Live
}

// logShower shows events in the form that was asked for, on standard output.
func (a *app) logShower(id sentinels.RunID) func(loggedEvent) error {
	if a.flags.output != asTable {
		return func(e loggedEvent) error {
			return a.out.json(append(e.raw, '\n'))
		}
	}
	out := &app{env: a.env, out: a.out, errs: a.errs, flags: a.flags, paint: a.paintOut}
	l := lines{app: out, root: id}
	at := func(e loggedEvent) termtext.Text {
		return a.paintOut.dim(escaped(e.Time.Local().Format("15:04:05.000")))
	}
	return func(e loggedEvent) error {
		for _, s := range l.of(e.Progress) {
			if err := a.out.printf("%s %s\n", at(e), s); err != nil {
				return err
			}
		}
		if e.Event == runtime.OnRunEnd && e.Run == id {
			return a.out.printf("%s %s\n", at(e), a.status(a.paintOut, e.Status))
		}
		return nil
	}
}

type loggedEvent struct {
	runtime.Progress
	raw []byte
}

// A logReader reads a run's log as it grows.
type logReader struct {
	path string
	at   int64 // behind the last whole line
}

// more returns the events of the whole lines that were not read yet. A line
// that is no event, as a crash may leave one, is passed over.
func (r *logReader) more() ([]loggedEvent, error) {
	f, _, err := regularfile.Open(r.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Seek(r.at, io.SeekStart); err != nil {
		return nil, err
	}
	var events []loggedEvent
	in := bufio.NewReader(f)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return events, err
		}
		r.at += int64(len(line))
		if e, ok := readEvent(bytes.TrimSpace(line)); ok {
			events = append(events, e)
		}
	}
}

// readEvent reads one line of a log.
func readEvent(line []byte) (loggedEvent, bool) {
	e := loggedEvent{raw: line}
	if len(line) == 0 || json.Unmarshal(line, &e.Progress) != nil || e.Event == "" {
		return e, false
	}
	e.Duration = millis(e.Millis)
	return e, true
}
