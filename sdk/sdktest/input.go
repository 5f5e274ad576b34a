package sdktest

import (
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// An Input is the run input of a step, clause A3 of ABI.md. Only the step type is
// required.
type Input struct {
	ABI     int             `json:"abi,omitempty"` // always replaced by [abi.Version]
	Step    Step            `json:"step"`
	Run     RunInfo         `json:"run"`
	Attempt int64           `json:"attempt,omitempty"` // default 1
	Retry   json.RawMessage `json:"retry,omitempty"`
	State   json.RawMessage `json:"state,omitempty"`
}

// A Step is one entry of a definition's steps, in the shape of the ABI.
type Step struct {
	Type    string          `json:"type"`
	ID      string          `json:"id,omitempty"`
	Name    string          `json:"name,omitempty"`
	Address string          `json:"address,omitempty"` // default "0"
	Path    string          `json:"path,omitempty"`    // default "0"
	OnError string          `json:"onError,omitempty"` // default "", which means fail
	Fields  json.RawMessage `json:"fields,omitempty"`  // default {}
}

// RunInfo describes the run that the step appears to belong to.
type RunInfo struct {
	ID        string `json:"id,omitempty"`        // default 01890000-0000-7000-8000-000000000000
	Sentinel  string `json:"sentinel,omitempty"`  // default "test"
	Iteration int64  `json:"iteration,omitempty"` // default 1
	Workspace string `json:"workspace,omitempty"` // default "/workspace"
	Key       string `json:"key,omitempty"`       // default "key"
}

// text returns the input as the guest gets it.
func (in Input) text(target Target) ([]byte, error) {
	fields, err := target.Fields(in.Step.Type, in.Step.Fields)
	if err != nil {
		return nil, err
	}
	in.ABI, in.Step.Fields = abi.Version, fields
	setDefault(&in.Step.Address, "0")
	setDefault(&in.Step.Path, "0")
	setDefault(&in.Run.ID, "01890000-0000-7000-8000-000000000000")
	setDefault(&in.Run.Sentinel, "test")
	setDefault(&in.Run.Workspace, "/workspace")
	setDefault(&in.Run.Key, "key")
	in.Run.Iteration = max(in.Run.Iteration, 1)
	in.Attempt = max(in.Attempt, 1)
	return json.Marshal(in)
}

func setDefault(s *string, value string) {
	if *s == "" {
		*s = value
	}
}
