package plugintest

import (
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// limits bound an input from the command line, which may contain whole files.
var limits = strictjson.Limits{Bytes: 16 << 20, Depth: 256, Keys: 1_000_000, StringBytes: 16 << 20}

// ReadInput reads the input of a step: only its fields, or a whole run input. Step is
// the step type; it may be empty if the input names one, or if the plugin has only one.
func (p *Plugin) ReadInput(text []byte, step string) (sdktest.Input, error) {
	var in sdktest.Input
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
