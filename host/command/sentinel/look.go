package sentinel

import (
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
	Status     string `json:"status,omitempty" jsonschema:"only runs with this status, or one of these, separated by commas: running, paused, waiting, quarantined, completed, failed, stopped, timed_out"`
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
		if err := f.listRuns(in, &out); err != nil {
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
	stored, err := f.rt.Definitions()
	if err != nil {
		return err
	}
	triggers, err := f.triggersBySentinel(sentinels.ID(in.SentinelID))
	if err != nil {
		return err
	}
	for _, s := range stored {
		if in.SentinelID != "" && string(s.ID) != in.SentinelID || string(s.ID) <= in.After || call.Visible(string(s.ID)) != string(s.ID) {
			continue
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
			continue
		}
		if len(out.Sentinels) == maxSentinels {
			out.NextSentinel = out.Sentinels[maxSentinels-1].SentinelID
			return nil
		}
		if slices.ContainsFunc(l.Triggers, func(t listedTrigger) bool { return t.Paused }) {
			l.Status = sentinels.StatusPaused
		}
		totals, err := f.rt.Totals(s.ID)
		if err != nil {
			return err
		}
		l.count(totals)
		out.Sentinels = append(out.Sentinels, l)
	}
	return nil
}

// listRuns lists a page. Ids of runs are in the order of their starts, so the
// last one of a page is where the next goes on, also when runs came or went
// meanwhile.
func (f family) listRuns(in listIn, out *listOut) error {
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
	if len(page) > limit {
		page = page[:limit]
		out.Next = string(page[limit-1].ID)
	}
	out.Runs = append(out.Runs, page...)
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
func (f family) trace(_ context.Context, _ *command.Call, in traceIn) (*runtime.Trace, error) {
	info, err := f.target(in.targetIn, true)
	if err != nil {
		return nil, err
	}
	return f.rt.TracePage(info.ID, runtime.TraceQuery{Iteration: in.Iteration, Newest: in.Newest, Step: in.Step, After: in.After, Records: in.Limit})
}
