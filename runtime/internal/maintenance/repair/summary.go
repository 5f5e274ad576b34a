package repair

import (
	"encoding/json"
	"maps"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A summary is what the engine stores about a run beside its journal. Fields that
// a repair does not know are kept.
type summary struct {
	summaryFields
	others map[string]json.RawMessage
}

// summaryFields are the fields that a repair reads or writes. None is left out when
// it is empty, so that it replaces the one that was stored.
type summaryFields struct {
	ID        sentinels.RunID  `json:"id"`
	Run       sentinels.RunID  `json:"run"`
	Sentinel  sentinels.ID     `json:"sentinel"`
	Name      string           `json:"name"`
	Status    sentinels.Status `json:"status"`
	Reason    string           `json:"reason"`
	Limit     string           `json:"limit"`
	Step      string           `json:"step"`
	Error     *abi.Error       `json:"error"`
	Iteration int              `json:"iteration"`
	Revision  int              `json:"revision"`
	Hash      string           `json:"hash"`
	Workspace string           `json:"workspace"`
	As        string           `json:"as"`
	Parent    sentinels.RunID  `json:"parent"`
	Root      sentinels.RunID  `json:"root"`
	Elapsed   int64            `json:"elapsedMs"`
	CreatedAt time.Time        `json:"createdAt"`
	StartedAt int64            `json:"startedAt"`
	UpdatedAt time.Time        `json:"updatedAt"`
	EndedAt   time.Time        `json:"endedAt"`
	Decisions json.RawMessage  `json:"decisions"` // pending decisions
	Snapshot  uint64           `json:"snapshot"`

	EndedBy       string `json:"endedBy"`
	EndedPause    string `json:"endedPause"`
	EndedQuestion string `json:"endedQuestion"`
}

// newSummary makes a summary from a journal.
func newSummary(id sentinels.RunID, j *keptJournal) summary {
	begin := j.Start
	return summary{summaryFields: summaryFields{
		ID: id, Run: id, Sentinel: begin.Sentinel, Name: string(begin.Sentinel), Status: sentinels.StatusRunning, Revision: begin.Revision, Hash: begin.Hash,
		Workspace: begin.Workspace, As: begin.As, Parent: begin.Parent, Root: begin.Root, Iteration: j.Iteration, Elapsed: j.Elapsed / 1000,
		CreatedAt: microTime(j.Began), StartedAt: microTime(j.Began).UnixMilli(), UpdatedAt: microTime(j.Newest), Snapshot: j.Snapshot,
	}}
}

// UnmarshalJSON decodes a stored summary.
func (s *summary) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, &s.summaryFields); err != nil {
		return err
	}
	return json.Unmarshal(text, &s.others)
}

// MarshalJSON encodes a summary with the fields that a repair does not know.
func (s summary) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(s.summaryFields)
	if err != nil || s.others == nil {
		return text, err
	}
	all := maps.Clone(s.others)
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	return json.Marshal(all)
}

func microTime(us int64) time.Time { return time.UnixMicro(us).UTC() }
