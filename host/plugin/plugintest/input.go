package plugintest

import (
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// An Input is what a step begins with, clause A3 of ABI.md. All but the type may
// be left out.
type Input struct {
	ABI     int             `json:"abi,omitempty"` // [abi.Version] whatever is here
	Step    Step            `json:"step"`
	Run     Run             `json:"run"`
	Attempt int             `json:"attempt,omitempty"` // default 1
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
	Fields  json.RawMessage `json:"fields,omitempty"`  // default {}
}

// A Run is the run that the step seems to belong to.
type Run struct {
	ID        string `json:"id,omitempty"`        // default 01890000-0000-7000-8000-000000000000
	Sentinel  string `json:"sentinel,omitempty"`  // default "test"
	Iteration int64  `json:"iteration,omitempty"` // default 1
	Workspace string `json:"workspace,omitempty"` // default "/workspace"
	Key       string `json:"key,omitempty"`       // default "key"
}

// limits bound what a person gives: cases may hold whole files.
var limits = strictjson.Limits{Bytes: 16 << 20, Depth: 256, Keys: 1_000_000, StringBytes: 16 << 20}

// ReadInput reads what a person gives as the input of a step: its fields alone,
// or a whole run input. Step is the type; an input that names one needs none,
// and neither does a plugin that has only one.
func (p *Plugin) ReadInput(text []byte, step string) (Input, error) {
	var in Input
	var keys map[string]json.RawMessage
	if err := strictjson.Decode(text, &keys, limits); err != nil || keys == nil {
		e := &abi.Error{Code: abi.BadFields, Message: "read input: want a JSON object",
			Hint: `give the step's fields, {"text": "hey"}, or a whole run input with "step"`}
		if err != nil {
			e.Message = "read input: " + err.Error()
		}
		return in, e
	}
	var whole struct {
		Type string `json:"type"`
	}
	if strictjson.DecodeOpen(keys["step"], &whole, limits) == nil && whole.Type != "" {
		if err := strictjson.Decode(text, &in, limits); err != nil {
			return in, abi.New(abi.BadFields, "read input: "+err.Error())
		}
	} else {
		in.Step.Fields = text
	}
	if step != "" {
		in.Step.Type = step
	}
	if types := p.types.Types(); in.Step.Type == "" && len(types) == 1 {
		in.Step.Type = string(types[0])
	}
	if in.Step.Type == "" {
		return in, &abi.Error{Code: abi.BadFields, Message: "read input: the plugin has several step types and the input names none", Hint: "name it with --type"}
	}
	return in, nil
}

// text is the input as the guest gets it.
func (in Input) text(p *Plugin) ([]byte, error) {
	fields, err := p.fields(in.Step.Type, in.Step.Fields)
	if err != nil {
		return nil, err
	}
	in.ABI, in.Step.Fields = abi.Version, fields
	put(&in.Step.Address, "0")
	put(&in.Step.Path, "0")
	put(&in.Run.ID, "01890000-0000-7000-8000-000000000000")
	put(&in.Run.Sentinel, "test")
	put(&in.Run.Workspace, "/workspace")
	put(&in.Run.Key, "key")
	in.Run.Iteration = max(in.Run.Iteration, 1)
	in.Attempt = max(in.Attempt, 1)
	return json.Marshal(in)
}

func put(s *string, fallback string) {
	if *s == "" {
		*s = fallback
	}
}
