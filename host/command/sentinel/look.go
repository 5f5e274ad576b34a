package sentinel

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

type listIn struct {
	SentinelID string `json:"sentinelId,omitempty" jsonschema:"only this sentinel"`
	Status     string `json:"status,omitempty" jsonschema:"only runs with this status, or one of these, separated by commas: running, queued, paused, waiting, quarantined, completed, failed, stopped, timed_out"`
	PersonaID  string `json:"personaId,omitempty" jsonschema:"only sentinels that this one created"`
	Tag        string `json:"tag,omitempty" jsonschema:"only sentinels with this tag"`
	Limit      int    `json:"limit,omitempty" jsonschema:"the newest so many runs; 50 if not given" minimum:"1" maximum:"1000"`
	Since      string `json:"since,omitempty" jsonschema:"only runs that started then or later: a time as RFC 3339 has it"`
	Before     string `json:"before,omitempty" jsonschema:"only runs older than this one: the next of the page before"`
	After      string `json:"after,omitempty" jsonschema:"only sentinels behind this one: the nextSentinel of the page before"`
	Only       string `json:"only,omitempty" jsonschema:"one of the two lists; both if not given" enum:"sentinels,runs"`
}

type listOut struct {
	Sentinels []listed          `json:"sentinels"`
	Runs      []runtime.RunInfo `json:"runs"`
	Next      string            `json:"next,omitempty" jsonschema:"there are older runs: give it as before"`
	// NextSentinel is for the other list, which has an order of its own.
	NextSentinel sentinels.ID `json:"nextSentinel,omitempty" jsonschema:"there are more sentinels: give it as after"`
	// Problems are those of files. A file without a valid definition has no other place.
	Problems sentinels.Problems `json:"problems,omitempty" jsonschema:"what is wrong with the files of definitions that this process follows"`
}

type listed struct {
	SentinelID        sentinels.ID     `json:"sentinelId"`
	Name              string           `json:"name"`
	Description       string           `json:"description,omitempty"`
	Revision          int              `json:"revision"`
	Steps             int              `json:"steps"`
	Loop              string           `json:"loop"`
	Tags              []string         `json:"tags,omitempty"`
	CreatedBy         string           `json:"createdBy,omitempty"`
	Status            sentinels.Status `json:"status" jsonschema:"of the newest run; without one that is on idle, or paused if its triggers are"`
	RunCount          int              `json:"runCount"`
	LastRunAt         *time.Time       `json:"lastRunAt,omitempty"`
	Triggers          []listedTrigger  `json:"triggers,omitempty"`
	AverageDurationMs int64            `json:"averageDurationMs,omitempty" jsonschema:"of the runs that are over"`
	Problem           string           `json:"problem,omitempty" jsonschema:"why it cannot be started"`
}

func (f family) list(_ context.Context, call *command.Call, in listIn) (listOut, error) {
	out := listOut{Sentinels: []listed{}, Runs: []runtime.RunInfo{}}
	if in.Only != "runs" {
		if err := f.listSentinels(call, in, &out); err != nil {
			return out, err
		}
		if f.opt.Definitions != nil {
			out.Problems = f.opt.Definitions.Problems()
		}
	}
	if in.Only != "sentinels" {
		if err := f.listRuns(call, in, &out); err != nil {
			return out, err
		}
	}
	return out, nil
}

// maxSentinels is how many sentinels a page has.
const maxSentinels = 1000

// listSentinels lists a page in the order of the ids, so that the last one of a page is where
// the next goes on, also when sentinels came or went meanwhile. Those whose id holds a secret that the
// caller does not see are left out: the parameter after would find it out.
func (f family) listSentinels(call *command.Call, in listIn, out *listOut) error {
	triggers, err := f.triggersBySentinel(sentinels.ID(in.SentinelID))
	if err != nil {
		return err
	}
	if in.SentinelID != "" {
		stored, err := f.rt.Definition(sentinels.ID(in.SentinelID))
		if abi.CodeOf(err) == abi.NotFound || err == nil && (stored.Deleted || string(stored.ID) <= in.After) {
			return nil
		}
		if err == nil {
			_, err = f.listSentinel(call, in, stored, triggers, call.Page(), out)
		}
		return err
	}
	page, read := call.Page(), int64(0)
	var failed error
	err = f.rt.EachDefinition(sentinels.ID(in.After), func(s runtime.Stored) bool {
		if read > maxRead {
			out.NextSentinel = s.ID // what is behind it comes on the next page
		}
		read += int64(len(s.Definition))
		var more bool
		more, failed = f.listSentinel(call, in, s, triggers, page, out)
		return more && failed == nil && out.NextSentinel == ""
	})
	return cmp.Or(failed, err)
}

// maxRead is how many bytes of definitions a page looks through, when most do not match.
const maxRead = 64 << 20

// listSentinel adds a sentinel to a page if it is asked for. more is false if the page has no place
// for it.
func (f family) listSentinel(
	call *command.Call, in listIn, s runtime.Stored, triggers map[sentinels.ID][]listedTrigger, page *command.Page, out *listOut,
) (more bool, err error) {
	if call.Visible(string(s.ID)) != string(s.ID) {
		return true, nil
	}
	l := listed{SentinelID: s.ID, Name: string(s.ID), Revision: s.Revision, Status: "idle", Triggers: triggers[s.ID]}
	def, err := f.rt.Decoded(s)
	if err != nil {
		l.Problem = err.Error()
	} else {
		l.Name, l.Description, l.Steps, l.Loop, l.Tags, l.CreatedBy = def.Name, def.Description, len(def.Steps), string(def.Loop.Type), def.Tags, def.CreatedBy
	}
	tagged := func(tag string) bool { return call.Visible(tag) == in.Tag }
	if in.PersonaID != "" && call.Visible(l.CreatedBy) != in.PersonaID || in.Tag != "" && !slices.ContainsFunc(l.Tags, tagged) {
		return true, nil
	}
	if slices.ContainsFunc(l.Triggers, func(t listedTrigger) bool { return t.Paused }) {
		l.Status = sentinels.StatusPaused
	}
	totals, err := f.rt.Totals(s.ID)
	if err != nil {
		return false, err
	}
	l.count(totals)
	fits, err := page.Fits(l)
	if err != nil {
		return false, err
	}
	if !fits || len(out.Sentinels) == maxSentinels {
		out.NextSentinel = out.Sentinels[len(out.Sentinels)-1].SentinelID
		return false, nil
	}
	out.Sentinels = append(out.Sentinels, l)
	return true, nil
}

// listRuns lists a page. Ids of runs are in the order of their starts, so the
// last one of a page is where the next goes on, also when runs came or went
// meanwhile.
func (f family) listRuns(call *command.Call, in listIn, out *listOut) error {
	limit := in.Limit
	if limit == 0 {
		limit = 50
	}
	var since time.Time
	if in.Since != "" {
		var err error
		if since, err = time.Parse(time.RFC3339, in.Since); err != nil {
			return &abi.Error{Code: abi.BadFields, Field: "since", Message: fmt.Sprintf("invalid since %q: want a time such as 2026-01-31T09:30:00Z", in.Since)}
		}
	}
	statuses, err := statusesIn(in.Status)
	if err != nil {
		return err
	}
	if in.Before != "" && !runIDPattern.MatchString(in.Before) {
		return &abi.Error{Code: abi.BadFields, Field: "before", Message: fmt.Sprintf("invalid before %.50q: want the id of a run, such as the next of an earlier page", in.Before)}
	}
	// One more than the page has, to know whether there is another.
	page, err := f.rt.Runs(runtime.RunFilter{Sentinel: sentinels.ID(in.SentinelID), Statuses: statuses,
		Since: since, Before: sentinels.RunID(in.Before), Limit: limit + 1})
	if err != nil {
		return err
	}
	bound := call.Page()
	for i, r := range page {
		fits, err := bound.Fits(r)
		if err != nil {
			return err
		}
		if !fits || i == limit {
			out.Next = string(page[i-1].ID)
			break
		}
		out.Runs = append(out.Runs, r)
	}
	return nil
}

var runIDPattern = lazyregexp.New(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// statusesIn reads a list of statuses that is separated by commas.
func statusesIn(text string) (list []sentinels.Status, err error) {
	if text == "" {
		return nil, nil
	}
	for _, word := range strings.Split(text, ",") {
		status := sentinels.Status(strings.TrimSpace(word))
		if !slices.Contains(sentinels.Statuses(), status) {
			var known []string
			for _, s := range sentinels.Statuses() {
				known = append(known, string(s))
			}
			return nil, &abi.Error{Code: abi.BadFields, Field: "status", Message: fmt.Sprintf("unknown status %.50q", word), Hint: "known are " + strings.Join(known, ", ")}
		}
		list = append(list, status)
	}
	return list, nil
}

// count adds what the sentinel's runs come to.
func (l *listed) count(t runtime.RunTotals) {
	l.RunCount = t.Runs
	if t.Runs == 0 {
		return
	}
	l.LastRunAt = &t.NewestAt
	if t.Status != "" {
		l.Status = t.Status
	}
	if average, ok := t.AverageDuration(); ok {
		l.AverageDurationMs = average.Milliseconds()
	}
}

type traceIn struct {
	targetIn
	Iteration int    `json:"iteration,omitempty" jsonschema:"only this one" minimum:"1"`
	Newest    bool   `json:"newest,omitempty" jsonschema:"only the newest iteration"`
	Step      string `json:"step,omitempty" jsonschema:"only steps with this path or address, and those around them"`
	After     string `json:"after,omitempty" jsonschema:"next of the page before; a step that began there is on this page without what that one has of it"`
	Limit     int    `json:"limit,omitempty" jsonschema:"records of the journal that the page is made of; it ends before after 8 MiB of values; 10000 if not given" minimum:"1" maximum:"10000"`
}

// trace returns a page of what the journal has of a run.
func (f family) trace(_ context.Context, call *command.Call, in traceIn) (*runtime.Trace, error) {
	info, err := f.target(in.targetIn, true)
	if err != nil {
		return nil, err
	}
	return f.rt.TracePage(info.ID, runtime.TraceQuery{Iteration: in.Iteration, Newest: in.Newest, Step: in.Step, After: in.After, Records: in.Limit, Count: call.Count})
}
