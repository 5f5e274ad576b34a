package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/host/internal/trust"
	"github.com/sentinel-runtime/sentinel/host/internal/trust/content"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/retry"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers/standard"
)

// listCommand shows what can be run and what was: the stored sentinels, those in
// the project's folders that are not stored, and the newest runs.
func (a verbs) listCommand() *cobra.Command {
	var params listFilter
	var since string
	c := &cobra.Command{
		Use: "list", Short: "List sentinels and runs",
		Example: "  sentinel list\n  sentinel list --status failed --since yesterday\n  sentinel list --tag nightly -o json",
		Args:    app.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if params.Limit < 1 || params.Limit > 1000 {
				return app.NewUsageError(fmt.Sprintf("--limit %d is not between 1 and 1000", params.Limit), "")
			}
			from, err := a.sinceFlag(since)
			if err != nil {
				return err
			}
			if !from.IsZero() {
				params.Since = from.UTC().Format(time.RFC3339Nano)
			}
			s, err := a.Connect(cmd.Context(), true)
			if err != nil {
				return err
			}
			defer a.CloseSession(s, &err)
			all, err := s.List(cmd.Context(), params.params())
			if err != nil {
				return err
			}
			if params.Tag != "" || params.PersonaID != "" {
				runsOfThese(&all)
			}
			if !s.ByURL && len(all.Problems) == 0 { // no server that follows the files
				all.Problems = a.Duplicates()
			}
			switch {
			case params.Status != "" || params.Before != "": // only runs are wanted
				all.Sentinels = nil
			case params.PersonaID == "" && !s.ByURL: // files do not name their author
				all.Sentinels = a.withFiles(all.Sentinels, params.Tag, all.Problems)
			}
			params.Limit = 0
			if !s.Serves() { // nothing fires then
				for _, l := range all.Sentinels {
					for i := range l.Triggers {
						l.Triggers[i].Next = nil
					}
				}
			}
			if err := a.showList(all, params != listFilter{}); err != nil {
				return err
			}
			a.showServer(s, all)
			return nil
		},
	}
	c.Flags().StringVar(&params.Status, "status", "", "only runs with this status, or one of these, separated by commas")
	_ = c.RegisterFlagCompletionFunc("status", func(*cobra.Command, []string, string) (words []string, _ cobra.ShellCompDirective) { // the flag exists
		for _, s := range sentinels.Statuses() {
			words = append(words, string(s))
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	})
	c.Flags().StringVar(&params.Tag, "tag", "", "only sentinels with this tag")
	c.Flags().StringVar(&params.PersonaID, "by", "", "only sentinels that this one created")
	c.Flags().StringVar(&params.PersonaID, "persona", "", "the same as --by")
	c.Flags().StringVar(&since, "since", "", "only runs that started then or later: a duration such as 2h, yesterday, monday, a day or a time")
	c.Flags().IntVar(&params.Limit, "limit", 20, "the newest so many runs")
	c.Flags().StringVar(&params.Before, "cursor", "", "only runs older than this one: the cursor that the last page ended with")
	return c
}

// showServer says below a table whether triggers fire.
func (a verbs) showServer(s *app.Session, all app.Listed) {
	fires := slices.ContainsFunc(all.Sentinels, func(l app.ListedSentinel) bool { return len(l.Triggers) > 0 })
	switch {
	case a.Flags.Output != output.FormatTable || s.ByURL:
	case s.Serves() && !a.Flags.Verbose: // with -v that is said already
		a.Info("a server runs here, process %d", s.Owner.PID)
	case !s.Serves() && fires:
		a.Info(nothingFires)
	}
}

// nothingFires is said where triggers are shown and no server runs.
const nothingFires = "no server runs here, so nothing fires; `sentinel serve` does that"

// A listFilter has the parameters of sentinel/list.
type listFilter struct {
	Status, Tag, PersonaID, Since, Before string
	Limit                                 int
}

func (f listFilter) params() map[string]any {
	out := map[string]any{"limit": f.Limit}
	for name, value := range map[string]string{"status": f.Status, "tag": f.Tag, "personaId": f.PersonaID, "since": f.Since, "before": f.Before} {
		if value != "" {
			out[name] = value
		}
	}
	return out
}

// sinceFlag reads --since. The zero time is none.
func (a verbs) sinceFlag(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	return a.Past("--since", text)
}

// runsOfThese drops the runs of sentinels that are not on the list: the engine
// chooses runs by their own properties only.
func runsOfThese(l *app.Listed) {
	l.Runs = slices.DeleteFunc(l.Runs, func(r runtime.RunInfo) bool {
		return !slices.ContainsFunc(l.Sentinels, func(s app.ListedSentinel) bool { return s.SentinelID == r.Sentinel })
	})
}

// withFiles adds the sentinels of the project's folders that the store does not
// have, and to stored ones what is wrong with their file by now. Step types are
// not looked at: that is what validate is for. A server that follows the files has looked,
// and found the problems.
func (a verbs) withFiles(stored []app.ListedSentinel, tag string, found sentinels.Problems) []app.ListedSentinel {
	known := map[sentinels.ID]int{}
	for i, s := range stored {
		known[s.SentinelID] = i
	}
	all := stored
	var policy *trust.Policy // the strictest, if the configuration is invalid
	if own, err := a.Policy(); err == nil {
		policy = own
	}
	for _, dir := range a.Folders() {
		for _, file := range a.DefinitionFiles(dir) {
			l := listFile(policy, file, a.Relative(file))
			if i := slices.IndexFunc(found, func(p sentinels.Problem) bool {
				return p.File == l.File && p.Kind != sentinels.KindDuplicate && !p.IsWarning()
			}); i >= 0 && l.Problem == "" {
				l.Problem = found[i].String()
			}
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
func listFile(policy *trust.Policy, file, name string) app.ListedSentinel {
	l := app.ListedSentinel{File: name, Status: "idle"}
	base := filepath.Base(file)
	named := sentinels.ID(strings.TrimSuffix(base, filepath.Ext(base)))
	text, err := policy.Read(file, sentinels.MaxBytes)
	if err != nil {
		var p *fs.PathError
		if errors.As(err, &p) {
			err = p.Err // the path has a column of its own
		}
		if errors.Is(err, content.ErrUntrusted) {
			err = errors.New("not trusted: sentinel trust shows what it executes") // the rest fits into no column
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
// the two it is: only runs have an id. filtered is whether flags left something out.
func (a verbs) showList(all app.Listed, filtered bool) error {
	if all.Sentinels == nil {
		all.Sentinels = []app.ListedSentinel{}
	}
	switch a.Flags.Output {
	case output.FormatJSON:
		return a.WriteJSON(all)
	case output.FormatJSONL:
		for _, s := range all.Sentinels {
			if err := a.WriteJSON(s); err != nil {
				return err
			}
		}
		for _, r := range all.Runs {
			if err := a.WriteJSON(r); err != nil {
				return err
			}
		}
		return nil
	}
	a.ShowProblems(slices.DeleteFunc(slices.Clone(all.Problems), func(p sentinels.Problem) bool { return p.Kind != sentinels.KindDuplicate })) // rows show others
	if len(all.Sentinels) > 0 {
		if err := a.showSentinels(all.Sentinels); err != nil {
			return err
		}
	}
	if len(all.Runs) > 0 {
		if len(all.Sentinels) > 0 {
			if err := a.Out.Write("\n"); err != nil {
				return err
			}
		}
		if err := a.showRuns(all.Runs); err != nil {
			return err
		}
		if all.Next != "" {
			a.Info("there are older runs: --cursor %s", all.Next)
		}
		return nil
	}
	switch {
	case len(all.Sentinels) > 0:
	case filtered:
		a.Info("nothing matches these flags")
	default:
		a.Info("there is nothing yet; `sentinel init` writes a first sentinel")
	}
	return nil
}

// showSentinels writes the table of sentinels. A terminal has their problems below it, whole: a column would cut them.
func (a verbs) showSentinels(list []app.ListedSentinel) error {
	rows, lessNeeded := a.sentinelRows(list)
	if !a.Env.StdoutTerminal {
		return a.Table(rows)
	}
	var problems []output.Row
	for i, r := range rows {
		problem := len(r) - 1
		if r[problem] != "" {
			text := string(list[i-1].SentinelID) + ": " + a.problemOf(list[i-1]) // the first row is the header
			problems = append(problems, output.Row{"", a.PaintOut.Bad(output.Clip(text, maxProblem))})
		}
		rows[i] = r[:problem]
	}
	if err := a.Table(rows, lessNeeded...); err != nil {
		return err
	}
	return a.Pairs(problems)
}

// maxProblem is how much of a problem a terminal shows, in characters.
const maxProblem = 400

// sentinelRows are the table of sentinels, and its columns that are less needed, least first. What triggers wait for
// has columns only where there are triggers: the table is wide as it is.
func (a verbs) sentinelRows(list []app.ListedSentinel) (rows []output.Row, lessNeeded []int) {
	p := a.PaintOut
	fired := slices.ContainsFunc(list, func(s app.ListedSentinel) bool { return len(s.Triggers) > 0 })
	titles := output.Row{"SENTINEL", "STATUS", "TRIGGER", "NEXT", "LOOP", "STEPS", "RUNS", "LAST", "REVISION", "FILE", "NAME", ""}
	if !fired {
		titles = slices.Delete(titles, 2, 4)
	}
	for _, title := range []termtext.Text{"NAME", "STEPS", "LOOP", "REVISION", "FILE", "RUNS"} {
		lessNeeded = append(lessNeeded, slices.Index(titles, title))
	}
	rows = []output.Row{output.Head(p, titles...)}
	for _, s := range list {
		var revision, runs, name, last, problem termtext.Text
		if s.Revision > 0 { // else it is not stored, and its runs are not counted
			revision, runs = output.Number(s.Revision), output.Number(s.RunCount)
		}
		if s.Name != string(s.SentinelID) {
			name = output.Clip(s.Name, 50)
		}
		if text := a.problemOf(s); text != "" {
			problem = p.Bad(output.Clip("problem: "+text, 90))
		}
		if s.LastRunAt != nil {
			last = output.Ago(a.Env.Now(), *s.LastRunAt)
		}
		r := output.Row{output.Escape(s.SentinelID), output.Status(p, s.Status)}
		if fired {
			trigger, next := a.waitsFor(s)
			r = append(r, trigger, next)
		}
		rows = append(rows, append(r, output.Escape(s.Loop), output.Number(s.Steps), runs, last, revision, output.Escape(s.File), name, problem))
	}
	return rows, lessNeeded
}

// showRuns names runs by the ends of their ids, which every verb takes.
func (a verbs) showRuns(runs []runtime.RunInfo) error {
	p := a.PaintOut
	rows := []output.Row{output.Head(p, "RUN", "SENTINEL", "STATUS", "ITERATION", "TIME", "STARTED", "")}
	for _, r := range runs {
		rows = append(rows, output.Row{
			output.ShortID(r.ID), output.Escape(r.Sentinel), output.Status(p, r.Status), output.Number(r.Iteration),
			output.Duration(time.Duration(r.Elapsed) * time.Millisecond), output.Ago(a.Env.Now(), r.CreatedAt), p.Dim(output.Clip(output.OneLine(retry.WithoutLine(reason(r))), 90)),
		})
	}
	return a.Table(rows)
}

// reason returns in a few words why a run has its status.
func reason(r runtime.RunInfo) string {
	switch {
	case len(r.Decisions) > 0:
		return r.Decisions[0].Prompt
	case r.Error != nil && r.Status != sentinels.StatusStopped:
		return r.Error.Message
	case r.Reason != "":
		return r.Reason
	case len(r.Queued) > 0:
		return r.Queued[0].Reason
	case r.Status == sentinels.StatusWaiting && !r.Live: // and no decision is pending
		return "decided; it continues when it is resumed"
	case !r.Status.Final() && !r.Live:
		return "no process executes it"
	}
	return ""
}

// waitsFor is what starts a sentinel by itself, and when that is next: of several
// triggers, the first that has a schedule.
func (a verbs) waitsFor(s app.ListedSentinel) (trigger, next termtext.Text) {
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
	return output.Clip(all, 40), a.when(at)
}

// problemOf is why a sentinel cannot be started, or else why it does not start by
// itself.
func (a verbs) problemOf(s app.ListedSentinel) string {
	if s.Problem != "" {
		return s.Problem
	}
	for _, t := range s.Triggers {
		if t.Problem != "" {
			return "trigger " + t.Type + ": " + t.Problem
		}
		if text := skipped(a.Env.Now(), t.Skips); text != "" {
			return text
		}
	}
	return ""
}

// skipped says that several firings in a row were skipped, "" for fewer.
func skipped(now time.Time, s runtime.TriggerSkips) string {
	if s.Count < 2 {
		return ""
	}
	text := fmt.Sprintf("%d firings skipped since %s", s.Count, output.Ago(now, s.Since))
	if s.Run != "" {
		text += fmt.Sprintf(", run %s is active", output.ShortID(s.Run))
	}
	return text
}
