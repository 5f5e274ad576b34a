package openai

import (
	"encoding/json"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"

	"github.com/sentinel-runtime/sentinel/host/llm/wire"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// params translates a request. A schema that does not decode is sent as it is
// and left to the server to refuse.
func params(r wire.Request) sdk.ChatCompletionNewParams {
	p := sdk.ChatCompletionNewParams{Model: r.Model}
	if r.System != "" {
		p.Messages = append(p.Messages, sdk.SystemMessage(r.System))
	}
	for _, m := range r.Messages {
		p.Messages = append(p.Messages, message(m))
	}
	for _, tool := range r.Tools {
		p.Tools = append(p.Tools, sdk.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name:        tool.Name,
			Description: sdk.String(tool.Description),
			Parameters:  object(tool.Schema),
		}))
	}
	if r.Schema != nil {
		p.ResponseFormat = sdk.ChatCompletionNewParamsResponseFormatUnion{
			OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{
				JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
					Name:   "reply",
					Strict: sdk.Bool(strict(r.Schema)),
					Schema: r.Schema,
				},
			},
		}
	}
	// Zero is a temperature, so only nil leaves it to the server.
	if r.Temperature != nil {
		p.Temperature = sdk.Float(*r.Temperature)
	}
	if r.MaxTokens > 0 {
		if r.Dialect.CompletionTokens {
			p.MaxCompletionTokens = sdk.Int(r.MaxTokens)
		} else {
			p.MaxTokens = sdk.Int(r.MaxTokens)
		}
	}
	if !r.Dialect.NoUsage {
		p.StreamOptions = sdk.ChatCompletionStreamOptionsParam{IncludeUsage: sdk.Bool(true)}
	}
	return p
}

// message translates one entry of a conversation.
func message(m sentinels.Message) sdk.ChatCompletionMessageParamUnion {
	switch m.Role {
	case "tool":
		content := m.Content
		if m.IsError {
			content = "error: " + content // the protocol has no field for it
		}
		return sdk.ToolMessage(content, m.ToolCallID)
	case "assistant":
		if len(m.ToolCalls) == 0 {
			return sdk.AssistantMessage(m.Content)
		}
		var p sdk.ChatCompletionAssistantMessageParam
		if m.Content != "" {
			p.Content.OfString = sdk.String(m.Content)
		}
		for _, call := range m.ToolCalls {
			p.ToolCalls = append(p.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{
				OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
					ID: call.ID,
					Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{
						Name: call.Name, Arguments: arguments(call.Arguments),
					},
				},
			})
		}
		return sdk.ChatCompletionMessageParamUnion{OfAssistant: &p}
	}
	return sdk.UserMessage(m.Content)
}

// arguments writes arguments as the model sent them: a JSON string holds a
// text that was no JSON object.
func arguments(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	if len(raw) == 0 {
		return "{}"
	}
	return string(raw)
}

// object is a schema as the SDK wants it. A tool without one takes nothing.
func object(schema json.RawMessage) map[string]any {
	var out map[string]any
	if json.Unmarshal(schema, &out) != nil || out == nil {
		return map[string]any{"type": "object", "properties": map[string]any{}}
	}
	return out
}

// strict reports whether a schema has the form for which the protocol promises
// to hold the model to it: every object closed and all its properties
// required. Other schemas are a hint to the model, and the host checks.
func strict(schema json.RawMessage) bool {
	var root map[string]any
	return json.Unmarshal(schema, &root) == nil && root["type"] == "object" && closed(root)
}

// closed walks the whole schema, its definitions too.
func closed(v any) bool {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if !closed(item) {
				return false
			}
		}
	case map[string]any:
		properties, isObject := v["properties"].(map[string]any)
		if v["type"] == "object" && !isObject {
			return false
		}
		if isObject {
			required, _ := v["required"].([]any)
			if v["additionalProperties"] != false || len(required) != len(properties) {
				return false
			}
		}
		for _, item := range v {
			if !closed(item) {
				return false
			}
		}
	}
	return true
}
