package run

import (
	"encoding/json"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Result is how a run ended, in the form of the last line of "-o jsonl".
type Result struct {
	ID         sentinels.RunID            `json:"id"` // Run, under the name that it has in a summary
	Run        sentinels.RunID            `json:"run"`
	Sentinel   sentinels.ID               `json:"sentinel"`
	Status     sentinels.Status           `json:"status"`
	Iterations int                        `json:"iterations"`
	Iteration  int                        `json:"iteration"` // the last one: Iterations, under the name that it has in a summary
	StartedAt  int64                      `json:"startedAt"` // milliseconds since 1970
	Duration   time.Duration              `json:"-"`
	Millis     int64                      `json:"durationMs"`
	Usage      sentinels.Usage            `json:"usage"`
	Output     json.RawMessage            `json:"output,omitempty"` // of the last top-level step
	Variables  map[string]json.RawMessage `json:"variables"`
	Reason     string                     `json:"reason,omitempty"` // the limit that ended the run, see [TimedOut] and [Failed]
	Step       string                     `json:"step,omitempty"`   // address of the step that failed
	Error      *abi.Error                 `json:"error,omitempty"`
	Finally    *abi.Error                 `json:"finally,omitempty"` // error of onFailure or finally, which changes nothing else
}

// Result returns what a summary has of a result: all but output and variables.
func (i Info) Result() Result {
	return Result{
		ID: i.ID, Run: i.ID, Sentinel: i.Sentinel, Status: i.Status, Iterations: i.Iteration, Iteration: i.Iteration, StartedAt: i.StartedAt,
		Millis: i.Elapsed, Usage: i.Usage, Reason: i.Limit, Step: i.Step, Error: i.Error, Finally: i.Finally,
	}
}
