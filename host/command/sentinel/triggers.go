package sentinel

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

type triggersIn struct {
	SentinelID string `json:"sentinelId,omitempty" jsonschema:"id of the sentinel; all if not given"`
	After      string `json:"after,omitempty" jsonschema:"only those of sentinels behind this one: the nextSentinel of the page before"`
	Next       int    `json:"next,omitempty" jsonschema:"so many planned times of each schedule, in upcoming" minimum:"1" maximum:"100"`
}

type triggersOut struct {
	Triggers     []runtime.TriggerInfo `json:"triggers"`
	NextSentinel sentinels.ID          `json:"nextSentinel,omitempty" jsonschema:"there are more: give it as after"`
}

// maxTriggers is with how many triggers a page ends; it has all of each of its sentinels.
const maxTriggers = 1000

// triggers shows what each trigger waits for and what became of its fires. A
// process that serves nothing arms none.
func (f family) triggers(_ context.Context, call *command.Call, in triggersIn) (triggersOut, error) {
	if in.SentinelID != "" {
		if _, err := f.rt.Definition(sentinels.ID(in.SentinelID)); err != nil {
			return triggersOut{}, err
		}
	}
	out := triggersOut{Triggers: []runtime.TriggerInfo{}}
	list, err := f.rt.UpcomingTriggers(sentinels.ID(in.SentinelID), in.Next)
	for _, t := range list { // in the order of the ids
		last := len(out.Triggers) - 1
		if string(t.Sentinel) <= in.After || call.Visible(string(t.Sentinel)) != string(t.Sentinel) {
			continue
		}
		if last+1 >= maxTriggers && out.Triggers[last].Sentinel != t.Sentinel {
			out.NextSentinel = out.Triggers[last].Sentinel
			break
		}
		out.Triggers = append(out.Triggers, t)
	}
	base := ""
	if f.opt.BaseURL != nil {
		base = f.opt.BaseURL()
	}
	SetHookURLs(out.Triggers, base)
	return out, err
}

// SetHookURLs sets where the requests go of triggers that fire on them, below the URL of the API. The list
// has all triggers of its sentinels: of several that take requests, each has its index in the address.
func SetHookURLs(list []runtime.TriggerInfo, base string) {
	several := map[sentinels.ID]int{}
	for _, t := range list {
		if t.Requests != nil {
			several[t.Sentinel]++
		}
	}
	for _, t := range list {
		if t.Requests == nil {
			continue
		}
		if t.Requests.URL = strings.TrimSuffix(base, "/") + "/v1/hooks/" + string(t.Sentinel); several[t.Sentinel] > 1 {
			t.Requests.URL += "/" + strconv.Itoa(t.Index)
		}
	}
}

// A listedTrigger is what a list has room for.
type listedTrigger struct {
	Type    string               `json:"type"`
	Detail  string               `json:"detail,omitempty"`
	Next    *time.Time           `json:"next,omitempty" jsonschema:"when it fires next"`
	Paused  bool                 `json:"paused,omitempty"`
	Until   time.Time            `json:"pausedUntil,omitzero" jsonschema:"when the pause ends by itself"`
	Ended   string               `json:"ended,omitempty" jsonschema:"why it starts nothing any more, by maxRuns or until"`
	Problem string               `json:"problem,omitempty"`
	Skips   runtime.TriggerSkips `json:"skips,omitzero" jsonschema:"firings in a row that were skipped, because a run was active"`
}

// triggersBySentinel is for lists: one look for all of them.
func (f family) triggersBySentinel(id sentinels.ID) (map[sentinels.ID][]listedTrigger, error) {
	all, err := f.rt.Triggers(id)
	if abi.CodeOf(err) == abi.NotFound {
		return nil, nil // only runs of it are known: it was never stored
	}
	if err != nil {
		return nil, err
	}
	by := map[sentinels.ID][]listedTrigger{}
	for _, t := range all {
		l := listedTrigger{Type: t.Type, Detail: t.Detail, Paused: t.Paused, Until: t.PausedUntil, Ended: t.Ended, Problem: t.Problem, Skips: t.Skips}
		if !t.Next.IsZero() {
			l.Next = &t.Next
		}
		by[t.Sentinel] = append(by[t.Sentinel], l)
	}
	return by, nil
}

// pauseTriggers is what pausing means for a sentinel that has no run: its triggers fire no more.
func (f family) pauseTriggers(ctx context.Context, call *command.Call, id string, until time.Time) (runtime.RunInfo, error) {
	if err := f.keepsGate(call, id); err != nil {
		return runtime.RunInfo{}, err
	}
	info, err := f.withTriggers(id)
	if err != nil {
		return info, err
	}
	info.Status, info.Reason = sentinels.StatusPaused, pausedReason(until)
	return info, f.rt.PauseTriggers(ctx, info.Sentinel, runtime.TriggerPause{Until: until, By: steeredBy(call), Over: endsPause(call, "pause the triggers of", id)})
}

// resumeTriggers ends the pause of pauseTriggers.
func (f family) resumeTriggers(ctx context.Context, call *command.Call, id string) (runtime.RunInfo, error) {
	info, _, err := f.asIdle(id)
	if err != nil {
		return info, err
	}
	return info, f.rt.ResumeTriggers(ctx, info.Sentinel, endsPause(call, "resume the triggers of", id))
}

// withTriggers returns a sentinel whose triggers can be paused. One without triggers has nothing that could be
// held back; a pause that it has from an earlier revision can be ended.
func (f family) withTriggers(id string) (runtime.RunInfo, error) {
	info, def, err := f.asIdle(id)
	if err == nil && len(def.Triggers) == 0 {
		err = &abi.Error{Code: abi.NotFound, Message: "sentinel " + id + " has no active run and no triggers"}
	}
	return info, err
}

// asIdle returns a sentinel in the form of a run, and its newest definition.
func (f family) asIdle(id string) (info runtime.RunInfo, def *sentinels.Definition, err error) {
	s, err := f.rt.Definition(sentinels.ID(id))
	if err != nil {
		return info, nil, err
	}
	if def, err = f.rt.Decoded(s); err != nil {
		return info, nil, err
	}
	return runtime.RunInfo{Sentinel: s.ID, Name: def.Name, Revision: s.Revision, Hash: s.Hash, Status: "idle"}, def, nil
}

// pausedReason says what the pause of triggers means.
func pausedReason(until time.Time) string {
	if until.IsZero() {
		return "its triggers do not fire"
	}
	return "its triggers do not fire until " + until.UTC().Format(time.RFC3339)
}

// endsPause returns the check of a call that ends the pause of triggers. That of a person is not even replaced, because
// the new one may end by itself or be ended by an agent.
func endsPause(call *command.Call, what, id string) func(by string) error {
	return func(by string) error {
		if mayResume(call, by) {
			return nil
		}
		return &abi.Error{Code: abi.Denied, Permanent: true, Field: "sentinelId", Message: fmt.Sprintf("%s sentinel %q: a person paused its triggers, so only a person resumes them", what, id),
			Hint: "sentinel resume " + id + ", by a person; for a run alone, name the run"}
	}
}
