package anthropic

import (
	"encoding/json"
	"regexp"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/sentinel-runtime/sentinel/host/llm/wire"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// params translates a request. The protocol wants user and assistant to take
// turns, no empty text, and the tools of every call that is part of the
// conversation.
func params(r wire.Request) sdk.MessageNewParams {
	p := sdk.MessageNewParams{Model: r.Model, MaxTokens: r.MaxTokens}
	if r.System != "" {
		p.System = []sdk.TextBlockParam{{Text: r.System}}
	}
	p.Messages = messages(r.Messages)
	for _, tool := range r.Tools {
		p.Tools = append(p.Tools, offer(tool))
	}
	// Declared but not to be used.
	if len(r.Tools) == 0 {
		if past := pastTools(r.Messages); len(past) > 0 {
			p.Tools = past
			none := sdk.NewToolChoiceNoneParam()
			p.ToolChoice = sdk.ToolChoiceUnionParam{OfNone: &none}
		}
	}
	if r.Schema != nil {
		var schema map[string]any
		if json.Unmarshal(r.Schema, &schema) == nil {
			p.OutputConfig = sdk.OutputConfigParam{Format: sdk.JSONOutputFormatParam{Schema: schema}}
		}
	}
	if r.Temperature != nil {
		p.Temperature = sdk.Float(*r.Temperature)
	}
	return p
}

// messages joins neighbours of one role, and the results of tools with what the
// user said after them: results are the user's words here.
func messages(in []sentinels.Message) []sdk.MessageParam {
	var out []sdk.MessageParam
	add := func(role sdk.MessageParamRole, blocks ...sdk.ContentBlockParamUnion) {
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Content = append(out[n-1].Content, blocks...)
			return
		}
		out = append(out, sdk.MessageParam{Role: role, Content: blocks})
	}
	for _, m := range in {
		switch m.Role {
		case "tool":
			add(sdk.MessageParamRoleUser, sdk.NewToolResultBlock(callID(m.ToolCallID), m.Content, m.IsError))
		case "assistant":
			var blocks []sdk.ContentBlockParamUnion
			// White space at the end of the assistant's text is refused.
			if text := strings.TrimRight(m.Content, " \t\r\n"); text != "" {
				blocks = append(blocks, sdk.NewTextBlock(text))
			}
			for _, call := range m.ToolCalls {
				blocks = append(blocks, sdk.NewToolUseBlock(callID(call.ID), input(call.Arguments), call.Name))
			}
			if len(blocks) > 0 {
				add(sdk.MessageParamRoleAssistant, blocks...)
			}
		default:
			if strings.TrimSpace(m.Content) != "" {
				add(sdk.MessageParamRoleUser, sdk.NewTextBlock(m.Content))
			}
		}
	}
	return out
}

// pastTools declares the tools of earlier calls when none are offered now; the
// protocol refuses a conversation that uses undeclared ones.
func pastTools(in []sentinels.Message) []sdk.ToolUnionParam {
	var out []sdk.ToolUnionParam
	seen := map[string]bool{}
	for _, m := range in {
		for _, call := range m.ToolCalls {
			if !seen[call.Name] {
				seen[call.Name] = true
				out = append(out, offer(sentinels.ToolSpec{Name: call.Name}))
			}
		}
	}
	return out
}

// offer declares a tool. The SDK has fields for three keywords of its schema;
// the others go along as they are.
func offer(tool sentinels.ToolSpec) sdk.ToolUnionParam {
	var fields map[string]any
	_ = json.Unmarshal(tool.Schema, &fields)
	schema := sdk.ToolInputSchemaParam{Properties: map[string]any{}, ExtraFields: map[string]any{}}
	for name, value := range fields {
		switch name {
		case "type": // always object here
		case "properties":
			schema.Properties = value
		case "required":
			list, _ := value.([]any)
			for _, item := range list {
				if text, ok := item.(string); ok {
					schema.Required = append(schema.Required, text)
				}
			}
		default:
			schema.ExtraFields[name] = value
		}
	}
	param := sdk.ToolUnionParamOfTool(schema, tool.Name)
	if tool.Description != "" {
		param.OfTool.Description = sdk.String(tool.Description)
	}
	return param
}

// input is a call's arguments as the object the protocol wants. A text that
// was no object is kept under a name of its own.
func input(raw json.RawMessage) any {
	var fields map[string]any
	if json.Unmarshal(raw, &fields) == nil && fields != nil {
		return raw
	}
	if len(raw) == 0 {
		return map[string]any{}
	}
	return map[string]any{"arguments": raw}
}

var notID = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// callID makes an id of another provider acceptable. Both sides of a call go
// through it, so they still agree.
func callID(id string) string { return notID.ReplaceAllString(id, "_") }
