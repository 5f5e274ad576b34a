package run

import (
	"encoding/json"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Result is how a run ended, in the form of the last line of "-o jsonl".
type Result struct {
	Run        sentinels.RunID            `json:"run"`
	Sentinel   sentinels.ID               `json:"sentinel"`
	Status     sentinels.Status           `json:"status"`
	Iterations int                        `json:"iterations"`
	Duration   time.Duration              `json:"-"`
	Millis     int64                      `json:"durationMs"`
	Usage      sentinels.Usage            `json:"usage"`
	Output     json.RawMessage            `json:"output,omitempty"` // of the last top-level step
	Variables  map[string]json.RawMessage `json:"variables"`
	Reason     string                     `json:"reason,omitempty"` // the limit that ended the run, see [Reasons]
	Step       string                     `json:"step,omitempty"`   // address of the step that failed
	Error      *abi.Error                 `json:"error,omitempty"`
}
