// Package steptype asks the step type of a plugin as if it were the server of a model
// provider. The contract is clause A9.6 of sdk/ABI.md.
package steptype

import (
	"context"
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/host/llm/wire"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/role"
)

// Steps executes step types that have the role model.
//
// # Concurrency
//
// Safe for concurrent use.
type Steps interface {
	// Known returns why a step type cannot answer turns now, nil if it can.
	Known(stepType string) error
	// Answer executes a turn. The error has the code of the step's error.
	Answer(ctx context.Context, stepType string, turn role.Turn) (role.Reply, error)
}

// A Client asks one step type. It has the methods of every client of a provider.
type Client struct {
	Step  string
	Steps Steps
}

// Stream makes one turn. The text comes at once, when the step has ended.
func (c *Client) Stream(ctx context.Context, r wire.Request, delta func(string)) (wire.Answer, error) {
	turn := role.Turn{Model: r.Model, System: r.System, Temperature: r.Temperature, MaxTokens: r.MaxTokens, Schema: r.Schema}
	for _, m := range r.Messages {
		own := role.Message{Role: m.Role, Content: m.Content, ToolCallID: m.ToolCallID, Name: m.Name, IsError: m.IsError}
		for _, call := range m.ToolCalls {
			own.ToolCalls = append(own.ToolCalls, role.ToolCall{ID: call.ID, Name: call.Name, Arguments: call.Arguments})
		}
		turn.Messages = append(turn.Messages, own)
	}
	for _, t := range r.Tools {
		turn.Tools = append(turn.Tools, role.Tool{Name: t.Name, Description: t.Description, Schema: t.Schema})
	}
	reply, err := c.Steps.Answer(ctx, c.Step, turn)
	if err != nil {
		return wire.Answer{}, err
	}
	answer := wire.Answer{Text: reply.Text, Finish: reply.Finish, Usage: wire.Usage{Known: true, Input: reply.Usage.InputTokens, Output: reply.Usage.OutputTokens}}
	for _, call := range reply.ToolCalls {
		answer.Calls = append(answer.Calls, wire.Call{ID: call.ID, Name: call.Name, Arguments: arguments(call.Arguments)})
	}
	if delta != nil && reply.Text != "" {
		delta(reply.Text)
	}
	return answer, nil
}

// arguments returns the text of a call's arguments, which is an object or a text with one.
func arguments(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// Models is an error: a step type has no list of models.
func (c *Client) Models(context.Context) ([]wire.Offer, error) {
	return nil, &abi.Error{Code: abi.BadFields, Permanent: true, Message: "the step type " + c.Step + " of a plugin does not list its models",
		Hint: "name one: provider/model, or set model of the provider"}
}
