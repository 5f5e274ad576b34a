package app

import (
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Listed is what sentinel/list answers.
type Listed struct {
	Sentinels []ListedSentinel  `json:"sentinels"`
	Runs      []runtime.RunInfo `json:"runs"`           // the newest first
	Next      string            `json:"next,omitempty"` // there are older runs behind this one
}

// A ListedSentinel is one that is stored, or lies in the project's folders.
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

// A listedTrigger is what a list tells of a trigger. `sentinel triggers` has all.
type listedTrigger struct {
	Type    string     `json:"type"`
	Detail  string     `json:"detail,omitempty"`
	Next    *time.Time `json:"next,omitempty"` // nil for what nobody plans, such as an event
	Paused  bool       `json:"paused,omitempty"`
	Problem string     `json:"problem,omitempty"`
}
