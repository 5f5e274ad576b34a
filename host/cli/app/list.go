package app

import (
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Listed is the result of sentinel/list.
type Listed struct {
	Sentinels []ListedSentinel  `json:"sentinels"`
	Runs      []runtime.RunInfo `json:"runs"`           // the newest first
	Next      string            `json:"next,omitempty"` // cursor of the next page
	// Problems are those of the files that a server follows, or of two files with one id.
	Problems sentinels.Problems `json:"problems,omitempty"`
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
	Type    string     `json:"type"`
	Detail  string     `json:"detail,omitempty"`
	Next    *time.Time `json:"next,omitempty"` // nil if it has no schedule, such as an event
	Paused  bool       `json:"paused,omitempty"`
	Problem string     `json:"problem,omitempty"`
}
