package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// listCommand shows what can be run and what was: the stored sentinels, those in
// the project's folders that are not stored, and the newest runs.
func (a *app) listCommand() *cobra.Command {
	var params struct {
		Status string `json:"status,omitempty"`
		Tag    string `json:"tag,omitempty"`
		Limit  int    `json:"limit,omitempty"`
	}
	c := &cobra.Command{
		Use: "list", Short: "List sentinels and runs", Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if params.Limit < 1 || params.Limit > 1000 {
				return &usageError{fmt.Sprintf("--limit %d is not between 1 and 1000", params.Limit), ""}
			}
			s, err := a.connect(cmd.Context(), true)
			if err != nil {
				return err
			}
			defer a.closing(s, &err)
			var all listed
			if err := s.call(cmd.Context(), "sentinel/list", params, &all); err != nil {
				return err
			}
			if params.Status == "" {
				all.Sentinels = append(all.Sentinels, a.unstored(s, all.Sentinels, params.Tag)...)
			} else {
				all.Sentinels = nil
			}
			return a.showList(all)
		},
	}
	c.Flags().StringVar(&params.Status, "status", "", "only runs with this status")
	c.Flags().StringVar(&params.Tag, "tag", "", "only sentinels with this tag")
	c.Flags().IntVar(&params.Limit, "limit", 20, "the newest so many runs")
	return c
}

// unstored are the sentinels of the project's folders that the store does not
// have. Their step types are not looked at: that is what validate is for.
func (a *app) unstored(_ *session, stored []listedSentinel, tag string) []listedSentinel {
	known := map[sentinels.ID]bool{}
	for _, s := range stored {
		known[s.SentinelID] = true
	}
	var out []listedSentinel
	for _, dir := range a.folders() {
		for _, pattern := range []string{"*.json", "*.jsonc"} {
			files, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil {
				continue // the pattern is ours: only a folder with odd signs in its name
			}
			for _, file := range files {
				l := listFile(file, a.relative(file))
				if known[l.SentinelID] || tag != "" && !has(l.Tags, tag) {
					continue
				}
				known[l.SentinelID] = true
				out = append(out, l)
			}
		}
	}
	return out
}

// listFile reads one file as far as that goes without its step types.
func listFile(file, name string) listedSentinel {
	l := listedSentinel{File: name, Status: "idle"}
	text, err := os.ReadFile(file)
	if err != nil {
		l.Problem = err.Error()
		return l
	}
	def, problems := sentinels.Decode(text, sentinels.DecodeOptions{File: name})
	if len(problems) > 0 {
		base := filepath.Base(file)
		l.SentinelID = sentinels.ID(base[:len(base)-len(filepath.Ext(base))])
		l.Problem = problems[0].String()
		return l
	}
	l.SentinelID, l.Name, l.Description, l.Steps, l.Loop, l.Tags = def.ID, def.Name, def.Description, len(def.Steps), string(def.Loop.Type), def.Tags
	return l
}

func has(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
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
	p := a.paintOut
	if len(all.Sentinels) > 0 {
		rows := [][]string{head(p, "SENTINEL", "STATUS", "LOOP", "STEPS", "RUNS", "REVISION", "NAME")}
		for _, s := range all.Sentinels {
			where := strconv.Itoa(s.Revision)
			if s.File != "" {
				where = s.File
			}
			name := clip(s.Name, 50)
			if s.Problem != "" {
				name = p.bad(clip("problem: "+s.Problem, 90))
			}
			rows = append(rows, []string{string(s.SentinelID), a.status(p, s.Status), s.Loop, strconv.Itoa(s.Steps), strconv.Itoa(s.RunCount), where, name})
		}
		if err := table(a.env.Stdout, rows); err != nil {
			return err
		}
	}
	if len(all.Runs) > 0 {
		if len(all.Sentinels) > 0 {
			fmt.Fprintln(a.env.Stdout)
		}
		return a.showRuns(all.Runs)
	}
	if len(all.Sentinels) == 0 {
		a.say("there is nothing yet; `sentinel init` writes a first sentinel")
	}
	return nil
}

// showRuns names runs by the ends of their ids, which every verb takes.
func (a *app) showRuns(runs []runtime.RunInfo) error {
	p := a.paintOut
	rows := [][]string{head(p, "RUN", "SENTINEL", "STATUS", "ITERATION", "TIME", "STARTED", "")}
	for _, r := range runs {
		rows = append(rows, []string{
			shortID(r.ID), string(r.Sentinel), a.status(p, r.Status), strconv.Itoa(r.Iteration),
			duration(time.Duration(r.Elapsed) * time.Millisecond), ago(a.env.Now(), r.CreatedAt), p.dim(clip(reason(r), 70)),
		})
	}
	return table(a.env.Stdout, rows)
}

// reason says in a few words why a run stands where it stands.
func reason(r runtime.RunInfo) string {
	switch {
	case len(r.Asks) > 0:
		return r.Asks[0].Prompt
	case r.Error != nil && r.Status != sentinels.StatusStopped:
		return r.Error.Message
	case r.Reason != "":
		return r.Reason
	case !r.Status.Final() && !r.Live:
		return "no process carries it out"
	}
	return ""
}

// head is the first row of a table.
func head(p palette, titles ...string) []string {
	for i := range titles {
		titles[i] = p.dim(titles[i])
	}
	return titles
}
