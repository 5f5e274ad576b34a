package app

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Listed is the result of sentinel/list.
type Listed struct {
	Sentinels []ListedSentinel  `json:"sentinels"`
	Runs      []runtime.RunInfo `json:"runs"`           // the newest first
	Next      string            `json:"next,omitempty"` // cursor of the next page
	// NextSentinel is the cursor of the next page of sentinels; [Session.List] follows it.
	NextSentinel sentinels.ID `json:"nextSentinel,omitempty"`
	// Problems are those of the files that a server follows, or of two files with one id.
	Problems sentinels.Problems `json:"problems,omitempty"`
}

// List calls sentinel/list and returns all sentinels and a page of runs.
func (s *Session) List(ctx context.Context, params map[string]any) (Listed, error) {
	var all Listed
	err := s.Call(ctx, "sentinel/list", params, &all)
	for err == nil && all.NextSentinel != "" {
		params = maps.Clone(params)
		params["only"], params["after"] = "sentinels", all.NextSentinel
		var page Listed
		err = s.Call(ctx, "sentinel/list", params, &page)
		all.Sentinels, all.NextSentinel = append(all.Sentinels, page.Sentinels...), page.NextSentinel
	}
	return all, err
}

// EachRun calls each with the runs that sentinel/list selects, the newest first, until it
// returns false.
func (s *Session) EachRun(ctx context.Context, params map[string]any, each func(runtime.RunInfo) bool) error {
	params = maps.Clone(params)
	params["only"], params["limit"] = "runs", 1000
	for {
		var page Listed
		if err := s.Call(ctx, "sentinel/list", params, &page); err != nil {
			return err
		}
		for _, r := range page.Runs {
			if !each(r) {
				return nil
			}
		}
		if page.Next == "" {
			return nil
		}
		params["before"] = page.Next
	}
}

// Unfinished returns the runs that have not ended, newest first. It asks by status, so that
// the runs of years are not transferred.
func (s *Session) Unfinished(ctx context.Context) ([]runtime.RunInfo, error) {
	runs := []runtime.RunInfo{}
	for _, status := range runtime.Unfinished() {
		err := s.EachRun(ctx, map[string]any{"status": status}, func(r runtime.RunInfo) bool {
			runs = append(runs, r)
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	// Ids are in the order of the starts.
	slices.SortFunc(runs, func(x, y runtime.RunInfo) int { return -strings.Compare(string(x.ID), string(y.ID)) })
	// A run may change its status between two calls.
	return slices.CompactFunc(runs, func(x, y runtime.RunInfo) bool { return x.ID == y.ID }), nil
}

// A ListedSentinel is stored, or only a file in the project's folders.
type ListedSentinel struct {
	SentinelID        sentinels.ID     `json:"sentinelId"`
	Name              string           `json:"name"`
	Description       string           `json:"description,omitempty"`
	Revision          int              `json:"revision"`
	Steps             int              `json:"steps"`
	Loop              string           `json:"loop"`
	Tags              []string         `json:"tags,omitempty"`
	CreatedBy         string           `json:"createdBy,omitempty"`
	Status            sentinels.Status `json:"status"`
	RunCount          int              `json:"runCount"`
	LastRunAt         *time.Time       `json:"lastRunAt,omitempty"`
	AverageDurationMs int64            `json:"averageDurationMs,omitempty"`
	Triggers          []listedTrigger  `json:"triggers,omitempty"`
	Problem           string           `json:"problem,omitempty"`
	File              string           `json:"file,omitempty"` // where it lies, when it is not stored
}

// A listedTrigger is the summary of a trigger. `sentinel triggers` shows all of it.
type listedTrigger struct {
	Type    string               `json:"type"`
	Detail  string               `json:"detail,omitempty"`
	Next    *time.Time           `json:"next,omitempty"` // nil if it has no schedule, such as an event
	Paused  bool                 `json:"paused,omitempty"`
	Problem string               `json:"problem,omitempty"`
	Skips   runtime.TriggerSkips `json:"skips,omitzero"`
}
