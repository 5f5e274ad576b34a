package ai

import (
	"context"
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/internal/modeldata"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

type generateIn struct {
	Prompt      string          `json:"prompt,omitempty" jsonschema:"what the model is asked; the context if not given"`
	System      string          `json:"system,omitempty" jsonschema:"who the model is and what holds for every answer"`
	Context     json.RawMessage `json:"context,omitempty" jsonschema:"material for the answer, such as $ragContext; of an object with a text field that text is used"`
	Model       string          `json:"model,omitempty" jsonschema:"provider/name, or auto for the configured one"`
	Temperature *float64        `json:"temperature,omitempty" jsonschema:"0 for the most likely words, higher for more variety; the model's own if not given" minimum:"0" maximum:"2"`
	MaxTokens   int64           `json:"maxTokens,omitempty" jsonschema:"how long the answer may be, with the model's thinking; 8192 if not given, 16384 for a model whose own maximum is known" minimum:"1"`
	Schema      json.RawMessage `json:"schema,omitempty" jsonschema:"JSON Schema the answer must have"`
}

type generateOut struct {
	Text       string          `json:"text"`
	JSON       json.RawMessage `json:"json,omitempty" jsonschema:"the answer read as JSON, if it is that"`
	StopReason string          `json:"stopReason" jsonschema:"stop, or length if the answer was cut off"`
	spent
}

// generate makes exactly one turn, without tools and without a conversation:
// what needs more is an llm step. The stop reason is part of the result because a
// text that was cut off looks like one that was not.
func (f family) generate(ctx context.Context, call *command.Call, in generateIn) (generateOut, error) {
	material := readable(in.Context)
	if in.Prompt == "" { // recipes ask by their context alone
		in.Prompt, material = material, ""
	}
	if in.Prompt == "" {
		return generateOut{}, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "prompt", Message: "generate: the prompt is empty"}
	}
	schema, err := schemaOf(in.Schema)
	if err != nil {
		return generateOut{}, err
	}
	reply, err := f.models.Turn(ctx, sentinels.Turn{
		Model:       in.Model,
		System:      in.System,
		Messages:    []sentinels.Message{{Role: "user", Content: modeldata.Before(material, in.Prompt)}},
		Schema:      schema,
		Temperature: in.Temperature,
		MaxTokens:   in.MaxTokens,
	}, nil)
	if err != nil {
		return generateOut{}, err
	}
	if schema != nil && (len(reply.JSON) == 0 || reply.Finish == "length") {
		return generateOut{}, notJSON("generate", reply)
	}
	return generateOut{reply.Text, reply.JSON, reply.Finish, spentOn(reply)}, nil
}

// schemaOf accepts an object; null is none. What the schema says is checked
// where the model is called.
func schemaOf(text json.RawMessage) (json.RawMessage, error) {
	if len(text) == 0 || string(text) == "null" {
		return nil, nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "schema", Message: "generate: field \"schema\": must be an object"}
	}
	return text, nil
}

// notJSON is the error for a reply that is not the requested JSON. A retry may
// succeed, unless the reply was truncated.
func notJSON(op string, r sentinels.Reply) error {
	e := abi.New(abi.Output, op+": the model's answer is not the JSON that was asked for")
	if r.Finish == "length" {
		e.Message += ", it was cut off"
		e.Permanent, e.Hint = true, "give maxTokens, or a larger one"
	}
	return e
}

// readable is a value as a model reads it: a text, the text of an object that
// has one, else its JSON.
func readable(value json.RawMessage) string {
	if len(value) == 0 || string(value) == "null" {
		return ""
	}
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	var object struct {
		Text *string `json:"text"`
	}
	if strictjson.DecodeOpen(value, &object, strictjson.Unlimited()) == nil && object.Text != nil {
		return *object.Text
	}
	return string(value)
}
