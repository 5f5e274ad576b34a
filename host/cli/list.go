package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/host/internal/trust"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers/standard"
)

// listCommand shows what can be run and what was: the stored sentinels, those in
// the project's folders that are not stored, and the newest runs.
func (a *app) listCommand() *cobra.Command {
	var params struct {
		Status    string `json:"status,omitempty"`
		Tag       string `json:"tag,omitempty"`
		PersonaID string `json:"personaId,omitempty"`
		Limit     int    `json:"limit,omitempty"`
		Since     string `json:"since,omitempty"`
		Before    string `json:"before,omitempty"`
	}
	var since string
	c := &cobra.Command{
		Use: "list", Short: "List sentinels and runs", Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if params.Limit < 1 || params.Limit > 1000 {
				return &usageError{fmt.Sprintf("--limit %d is not between 1 and 1000", params.Limit), ""}
			}
			from, err := a.sinceFlag(since)
			if err != nil {
				return err
			}
			if !from.IsZero() {
				params.Since = from.UTC().Format(time.RFC3339Nano)
			}
			s, err := a.connect(cmd.Context(), true)
			if err != nil {
				return err
			}
			defer a.closing(s, &err)
			var all listed
			if err := s.Call(cmd.Context(), "sentinel/list", params, &all); err != nil {
				return err
			}
			if params.Tag != "" || params.PersonaID != "" {
				all.runsOfThese()
			}
			switch {
			case params.Status != "" || params.Before != "": // runs are what is asked for
				all.Sentinels = nil
			case params.PersonaID == "" && !s.url: // files name nobody who made them
				all.Sentinels = a.withFiles(all.Sentinels, params.Tag)
			}
			return a.showList(all)
		},
	}
	c.Flags().StringVar(&params.Status, "status", "", "only runs with this status")
	c.Flags().StringVar(&params.Tag, "tag", "", "only sentinels with this tag")
	c.Flags().StringVar(&params.PersonaID, "by", "", "only sentinels that this one created")
	c.Flags().StringVar(&params.PersonaID, "persona", "", "the same as --by")
	c.Flags().StringVar(&since, "since", "", "only runs that started then or later: a duration, a day or a time")
	c.Flags().IntVar(&params.Limit, "limit", 20, "the newest so many runs")
	c.Flags().StringVar(&params.Before, "cursor", "", "only runs older than this one: what the page before told at its end")
	return c
}

// sinceFlag reads --since. The zero time is none.
func (a *app) sinceFlag(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return a.env.Now().Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, "2006-01-02T15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, &usageError{fmt.Sprintf("invalid --since %q: want a duration, a day or a time", text), "such as 2h, 2026-01-31 or 2026-01-31T09:30:00Z"}
}

// runsOfThese drops the runs of sentinels that are not on the list: the engine
// chooses runs by their own properties only.
func (l *listed) runsOfThese() {
	l.Runs = slices.DeleteFunc(l.Runs, func(r runtime.RunInfo) bool {
		return !slices.ContainsFunc(l.Sentinels, func(s listedSentinel) bool { return s.SentinelID == r.Sentinel })
	})
}

// withFiles adds the sentinels of the project's folders that the store does not
// have, and to stored ones what is wrong with their file by now. Step types are
// not looked at: that is what validate is for.
func (a *app) withFiles(stored []listedSentinel, tag string) []listedSentinel {
	known := map[sentinels.ID]int{}
	for i, s := range stored {
		known[s.SentinelID] = i
	}
	all := stored
	var policy *trust.Policy // the strictest, where the configuration says nothing valid
	if settled, err := a.settings(); err == nil {
		policy = settled.Policy
	}
	for _, dir := range a.folders() {
		for _, file := range a.definitionFiles(dir) {
			l := listFile(policy, file, a.relative(file))
			if i, is := known[l.SentinelID]; is {
				if all[i].Problem == "" && i < len(stored) {
					all[i].Problem = l.Problem
				}
				continue
			}
			if tag == "" || slices.Contains(l.Tags, tag) {
				known[l.SentinelID] = len(all)
				all = append(all, l)
			}
		}
	}
	return all
}

// listFile reads one file as far as that goes without its step types. One that may not
// be obeyed is listed with the reason.
func listFile(policy *trust.Policy, file, name string) listedSentinel {
	l := listedSentinel{File: name, Status: "idle"}
	base := filepath.Base(file)
	named := sentinels.ID(strings.TrimSuffix(base, filepath.Ext(base)))
	text, err := policy.Read(file, sentinels.MaxBytes)
	if err != nil {
		var p *fs.PathError
		if errors.As(err, &p) {
			err = p.Err // the path has a column of its own
		}
		l.SentinelID, l.Problem = named, err.Error()
		return l
	}
	def, problems := sentinels.Decode(text, sentinels.DecodeOptions{Triggers: standard.Set().Formats(), File: name})
	if len(problems) > 0 {
		l.SentinelID = named
		l.Problem = problems[0].String()
		return l
	}
	l.SentinelID, l.Name, l.Description, l.Steps, l.Loop, l.Tags = def.ID, def.Name, def.Description, len(def.Steps), string(def.Loop.Type), def.Tags
	return l
}

// showList writes sentinels, then runs. In jsonl a line tells by its keys which of
// the two it is: only runs have an id.
func (a *app) showList(all listed) error {
	if all.Sentinels == nil {
		all.Sentinels = []listedSentinel{}
	}
	switch a.flags.output {
	case asJSON:
		return a.writeJSON(all)
	case asJSONL:
		for _, s := range all.Sentinels {
			if err := a.writeJSON(s); err != nil {
				return err
			}
		}
		for _, r := range all.Runs {
			if err := a.writeJSON(r); err != nil {
				return err
			}
		}
		return nil
	}
	if len(all.Sentinels) > 0 {
		rows := a.sentinelRows(all.Sentinels)
		if err := a.table(rows); err != nil {
			return err
		}
	}
	if len(all.Runs) > 0 {
		if len(all.Sentinels) > 0 {
			if err := a.out.write("\n"); err != nil {
				return err
			}
		}
		if err := a.showRuns(all.Runs); err != nil {
			return err
		}
		if all.Next != "" {
			a.say("there are older runs: --cursor %s", all.Next)
		}
		return nil
	}
	if len(all.Sentinels) == 0 {
		a.say("there is nothing yet; `sentinel init` writes a first sentinel")
	}
	return nil
}

// sentinelRows are the table of sentinels. What triggers wait for has columns only
// where there are triggers: the table is wide as it is.
func (a *app) sentinelRows(list []listedSentinel) []row {
	p := a.paintOut
	fired := slices.ContainsFunc(list, func(s listedSentinel) bool { return len(s.Triggers) > 0 })
	titles := row{"SENTINEL", "STATUS", "TRIGGER", "NEXT", "LOOP", "STEPS", "RUNS", "LAST", "REVISION", "NAME"}
	if !fired {
		titles = slices.Delete(titles, 2, 4)
	}
	rows := []row{head(p, titles...)}
	for _, s := range list {
		where, name, last := number(s.Revision), clip(s.Name, 50), termtext.Text("")
		if s.File != "" {
			where = escaped(s.File)
		}
		if text := problemOf(s); text != "" {
			name = p.bad(clip("problem: "+text, 90))
		}
		if s.LastRunAt != nil {
			last = ago(a.env.Now(), *s.LastRunAt)
		}
		r := row{escaped(s.SentinelID), statusText(p, s.Status)}
		if fired {
			trigger, next := a.waitsFor(s)
			r = append(r, trigger, next)
		}
		rows = append(rows, append(r, escaped(s.Loop), number(s.Steps), number(s.RunCount), last, where, name))
	}
	return rows
}

// showRuns names runs by the ends of their ids, which every verb takes.
func (a *app) showRuns(runs []runtime.RunInfo) error {
	p := a.paintOut
	rows := []row{head(p, "RUN", "SENTINEL", "STATUS", "ITERATION", "TIME", "STARTED", "")}
	for _, r := range runs {
		rows = append(rows, row{
			shortID(r.ID), escaped(r.Sentinel), statusText(p, r.Status), number(r.Iteration),
			duration(time.Duration(r.Elapsed) * time.Millisecond), ago(a.env.Now(), r.CreatedAt), p.dim(clip(reason(r), 70)),
		})
	}
	return a.table(rows)
}

// reason says in a few words why a run stands where it stands.
func reason(r runtime.RunInfo) string {
	switch {
	case len(r.Decisions) > 0:
		return r.Decisions[0].Prompt
	case r.Error != nil && r.Status != sentinels.StatusStopped:
		return r.Error.Message
	case r.Reason != "":
		return r.Reason
	case !r.Status.Final() && !r.Live:
		return "no process executes it"
	}
	return ""
}

// waitsFor is what starts a sentinel by itself, and when that is next: of several
// triggers, the first that nobody has to cause.
func (a *app) waitsFor(s listedSentinel) (trigger, next termtext.Text) {
	var at time.Time
	var all string
	for i, t := range s.Triggers {
		if i > 0 {
			all += ", "
		}
		text := t.Type
		if t.Detail != "" {
			text += " " + t.Detail
		}
		if t.Paused {
			text += " (paused)"
		}
		all += text
		if t.Next != nil && (at.IsZero() || t.Next.Before(at)) {
			at = *t.Next
		}
	}
	return clip(all, 40), a.when(at)
}

// problemOf is why a sentinel cannot be started, or else why it does not start by
// itself.
func problemOf(s listedSentinel) string {
	if s.Problem != "" {
		return s.Problem
	}
	for _, t := range s.Triggers {
		if t.Problem != "" {
			return "trigger " + t.Type + ": " + t.Problem
		}
	}
	return ""
}
