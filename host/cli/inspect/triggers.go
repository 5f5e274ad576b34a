package inspect

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// triggersCommand shows what would start sentinels. What they count is kept in the
// store, so it can be seen without a server, but nothing fires then.
func (a verbs) triggersCommand() *cobra.Command {
	var next int
	c := &cobra.Command{
		Use: "triggers [FILE|NAME]", Short: "Show what triggers wait for, and the outcomes of their firings",
		Example: "  sentinel triggers\n  sentinel triggers nightly --next 5",

		Long: "Without a server the triggers of files that are not stored yet are shown too.",
		Args: app.RangeArgs(0, 1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if cmd.Flags().Changed("next") && (next < 1 || next > 100) {
				return app.NewUsageError(fmt.Sprintf("--next %d is not between 1 and 100", next), "")
			}
			s, err := a.Connect(cmd.Context(), true)
			if err != nil {
				return err
			}
			defer a.CloseSession(s, &err)
			list, err := a.allTriggers(cmd.Context(), s, strings.Join(args, ""), next)
			if err != nil {
				return err
			}
			return a.showTriggers(s, list)
		},
	}
	c.Flags().IntVar(&next, "next", 0, "show so many of the next times of each schedule")
	return c
}

// triggersOf asks for the triggers of a sentinel, or of all with "", with as many planned
// times as next says. They come in the order of the definitions.
func (a verbs) triggersOf(ctx context.Context, s *app.Session, id sentinels.ID, next int) ([]runtime.TriggerInfo, error) {
	params := map[string]any{}
	if id != "" {
		params["sentinelId"] = id
	}
	if next > 0 {
		params["next"] = next
	}
	var list []runtime.TriggerInfo
	for {
		var page struct {
			Triggers     []runtime.TriggerInfo `json:"triggers"`
			NextSentinel sentinels.ID          `json:"nextSentinel"`
		}
		if err := s.Call(ctx, "sentinel/triggers", params, &page); err != nil {
			return nil, err
		}
		if list = append(list, page.Triggers...); page.NextSentinel == "" {
			return list, nil
		}
		params["after"] = page.NextSentinel
	}
}

// allTriggers returns the triggers of a file, of a name, or of all with "". A server
// stores the files of its folder; without one, those that are not stored yet count too.
func (a verbs) allTriggers(ctx context.Context, s *app.Session, word string, next int) ([]runtime.TriggerInfo, error) {
	file := func(l app.ListedSentinel) ([]runtime.TriggerInfo, error) {
		return a.fileTriggers(ctx, next, []app.ListedSentinel{l})
	}
	if word != "" && a.IsFile(word) {
		// A server that has armed the file knows its state and zone.
		if id := a.servedID(s, word); id != "" {
			if list, err := a.triggersOf(ctx, s, id, next); err == nil {
				return list, nil
			}
		}
		return file(app.ListedSentinel{File: word})
	}
	list, err := a.triggersOf(ctx, s, sentinels.ID(word), next)
	switch {
	case s.Serves() || err == nil && word != "":
		return list, err
	case word != "" && abi.CodeOf(err) == abi.NotFound:
		if src, fault := a.ReadSource(word); src == nil || fault != nil {
			return nil, err
		}
		return file(app.ListedSentinel{File: word})
	case err != nil:
		return nil, err
	}
	stored, err := s.List(ctx, map[string]any{"only": "sentinels"})
	if err != nil {
		return nil, err
	}
	more, err := a.fileTriggers(ctx, next, a.withFiles(stored.Sentinels, "", nil)[len(stored.Sentinels):])
	return append(list, more...), err
}

// servedID returns the id in a file of the folders that a server follows, "" for another
// file or without a server.
func (a verbs) servedID(s *app.Session, word string) sentinels.ID {
	path := a.Path(word)
	if !s.Serves() || s.ByURL || !slices.ContainsFunc(a.Folders(), func(dir string) bool { return slices.Contains(a.DefinitionFiles(dir), path) }) {
		return ""
	}
	src, err := a.ReadSource(word)
	if err != nil || src == nil {
		return ""
	}
	if def, problems := app.DecodeAnyStep(src); len(problems) == 0 {
		return def.ID
	}
	return ""
}

// fileTriggers returns the triggers of files that are not stored, as if they were stored
// now. Of several, one with problems is shown with its problem.
func (a verbs) fileTriggers(ctx context.Context, next int, files []app.ListedSentinel) (list []runtime.TriggerInfo, err error) {
	if len(files) == 0 {
		return nil, nil
	}
	s, err := a.Scratch(ctx)
	if err != nil {
		return nil, err
	}
	defer a.CloseSession(s, &err)
	for _, l := range files {
		src, err := a.ReadSource(l.File)
		if err == nil {
			err = app.NameFile(app.Invalid(s.Call(ctx, "sentinel/create", map[string]any{"definition": string(src.Text)}, nil)), src)
		}
		switch {
		case err != nil && len(files) == 1 && l.SentinelID == "":
			return nil, err
		case err != nil:
			list = append(list, runtime.TriggerInfo{Sentinel: l.SentinelID, Index: -1, Problem: cmp.Or(l.Problem, err.Error())})
		}
	}
	found, err := a.triggersOf(ctx, s, "", next)
	return append(found, list...), err
}

// showTriggers writes a trigger a line, and each further planned time on one below it.
// Counts are exact and survive restarts, so they are shown whether or not anything fires
// now.
func (a verbs) showTriggers(s *app.Session, list []runtime.TriggerInfo) error {
	if done, err := app.WriteItems(a.App, list, list); done {
		return err
	}
	if len(list) == 0 {
		a.Info("no triggers")
		return nil
	}
	p := a.PaintOut
	rows := []output.Row{output.Head(p, "SENTINEL", "TRIGGER", "WAITS FOR", "STATE", "NEXT", "LAST", "FIRES", "")}
	var notes []output.Row
	for _, t := range list {
		last, next := termtext.Text(""), a.when(t.Next)
		if !t.LastFire.IsZero() {
			last = output.Ago(a.Env.Now(), t.LastFire)
		}
		if len(t.Upcoming) > 0 {
			next = output.Time(t.Upcoming[0])
		}
		note := cmp.Or(t.Ended, t.Problem, skipped(a.Env.Now(), t.Skips), refusedRequests(t.Requests), t.LastReason)
		row := output.Row{output.Escape(t.Sentinel), output.Escape(t.Type), waitsFor(t), a.armed(t), next, last, output.Escape(fires(t))}
		switch {
		case !a.Env.StdoutTerminal:
			row = append(row, p.Dim(output.Clip(note, 70)))
		case note != "": // below the table, whole: a column would cut it
			notes = append(notes, output.Row{"", p.Dim(output.Clip(string(t.Sentinel)+": "+note, maxProblem))})
		}
		rows = append(rows, row)
		for i := 1; i < len(t.Upcoming); i++ {
			rows = append(rows, output.Row{"", "", "", "", output.Time(t.Upcoming[i])})
		}
	}
	if err := a.Table(rows, 5, 1); err != nil { // LAST and TRIGGER are less needed
		return err
	}
	if err := a.Pairs(notes); err != nil {
		return err
	}
	if !s.Serves() {
		a.Info(nothingFires)
	}
	return nil
}

// waitsFor is what a trigger waits for. The address of requests is shown whole, to be copied.
func waitsFor(t runtime.TriggerInfo) termtext.Text {
	if t.Requests != nil {
		return output.Escape(t.Requests.URL)
	}
	return output.Clip(t.Detail, 40)
}

// refusedRequests counts the requests that a trigger did not accept, the most frequent reason first.
func refusedRequests(r *runtime.TriggerRequests) string {
	if r == nil || r.Refused == 0 {
		return ""
	}
	reasons := slices.SortedFunc(maps.Keys(r.Reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.Reasons[b], r.Reasons[a]), strings.Compare(a, b))
	})
	text := fmt.Sprintf("%d requests refused", r.Refused)
	if r.Refused == 1 {
		text = "1 request refused"
	}
	for i, reason := range reasons {
		text += map[bool]string{true: ": ", false: ", "}[i == 0] + reason
		if n := r.Reasons[reason]; n != r.Refused {
			text += fmt.Sprintf(" (%d)", n)
		}
	}
	return text
}

// armed is the state of a trigger in a word. Paused has priority: it is what a user
// wanted, also where the trigger could not fire anyway.
func (a verbs) armed(t runtime.TriggerInfo) termtext.Text {
	p := a.PaintOut
	switch {
	case t.Paused && !t.PausedUntil.IsZero():
		return p.Warn("paused until " + output.Soon(a.Env.Now(), t.PausedUntil.Local()))
	case t.Paused:
		return p.Warn("paused")
	case t.Ended != "":
		return p.Dim("ended")
	case t.Armed:
		return p.Good("armed")
	case t.Problem != "":
		return p.Bad("broken")
	}
	return p.Dim("off")
}

// when is a planned time in the zone of its schedule; the day is left out when it is
// today's.
func (a verbs) when(t time.Time) termtext.Text {
	if t.IsZero() {
		return ""
	}
	return output.Soon(a.Env.Now(), t)
}

// fires counts the outcomes of firings, without those that are 0. The parts
// come to the first number, but for own ones, which are among the others, and missed
// and overdue ones, which never fired.
func fires(t runtime.TriggerInfo) string {
	if t.Fired == 0 && t.Missed == 0 && t.Overdue == 0 {
		return "0"
	}
	parts := []string{strconv.FormatUint(t.Fired, 10)}
	for _, c := range []struct {
		n    uint64
		what string
	}{
		{t.Started, "started"}, {t.Skipped, "skipped"}, {t.Filtered, "filtered"}, {t.Coalesced, "coalesced"},
		{t.Duplicates, "duplicate"}, {t.Refused, "refused"}, {uint64(max(0, t.Waiting)), "waiting"}, {t.Own, "own"},
		{t.Missed, "missed"}, {t.Overdue, "overdue"},
	} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	return strings.Join(parts, ", ")
}
