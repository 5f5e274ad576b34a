package role

import (
	"encoding/json"
	"fmt"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Clause returns the clause of ABI.md with the contract of a role.
func Clause(as abi.Role) string {
	switch as {
	case abi.RoleCommand:
		return "A9.2"
	case abi.RoleErrorClassifier:
		return "A9.3"
	case abi.RoleOutputClassifier:
		return "A9.4"
	case abi.RoleNotifier:
		return "A9.5"
	case abi.RoleModel:
		return "A9.6"
	}
	return "A9.1"
}

// CheckFields returns why a step type does not accept the fields that the host gives to a
// role. accepts is the check of fields against the schema of the step type. The fields of a
// command are what its author chooses, so they are not checked.
func CheckFields(as abi.Role, accepts func(fields json.RawMessage) error) error {
	for _, fields := range examples(as) {
		if err := accepts(fields); err != nil {
			return fmt.Errorf("fields does not accept %s, which the host gives to a role %s (%s): %w", fields, as, Clause(as), err)
		}
	}
	return nil
}

// examples returns fields as the host gives them: with nothing optional and with everything.
func examples(as abi.Role) []json.RawMessage {
	one, some := 1, 0.5
	var all []any
	switch as {
	case abi.RoleErrorClassifier:
		all = []any{
			Failure{Message: "", Source: SourceTicket},
			Failure{Message: "exit status 1", Code: abi.Plugin, Source: SourceStep, ExitCode: &one},
			Failure{Message: "no space left", Code: abi.Internal, Source: SourceOperator},
		}
	case abi.RoleOutputClassifier:
		all = []any{
			Lines{Lines: []Line{{Text: "", Stream: "stdout"}}},
			Lines{Lines: []Line{{Text: "a", Stream: "stderr"}, {Text: "b", Stream: "file"}}},
		}
	case abi.RoleNotifier:
		all = []any{
			Notice{Title: "a", Severity: "info", Key: "msg_1"},
			Notice{Title: "a", Text: "b", Severity: "warning", Key: "msg_2", Event: "ticket:update", Ticket: "T-1", Run: "r1", URL: "https://example.com"},
			Notice{Title: "a", Severity: "error", Key: "msg_3"},
		}
	case abi.RoleModel:
		object := json.RawMessage(`{"type":"object"}`)
		all = []any{
			Turn{Model: "m", Messages: []Message{{Role: "user", Content: "a"}}},
			Turn{Model: "m", System: "s", Temperature: &some, MaxTokens: 10, Schema: object, Tools: []Tool{{Name: "code-read", Description: "d", Schema: object}}, Messages: []Message{
				{Role: "user", Content: "a"},
				{Role: "assistant", ToolCalls: []ToolCall{{ID: "1", Name: "code-read", Arguments: json.RawMessage(`{}`)}}},
				{Role: "tool", Content: "b", ToolCallID: "1", Name: "code-read", IsError: true},
			}},
		}
	}
	texts := make([]json.RawMessage, len(all))
	for i, fields := range all {
		texts[i], _ = json.Marshal(fields) // structs of texts and numbers always encode
	}
	return texts
}

// CheckOutput returns why an output does not keep the contract of a role. fields are those
// that the step had. The output of a command and of a notifier may be any value.
func CheckOutput(as abi.Role, fields, output json.RawMessage) error {
	var err error
	switch as {
	case abi.RoleErrorClassifier:
		_, err = ReadErrorClass(output)
	case abi.RoleOutputClassifier:
		var in Lines
		if err := json.Unmarshal(fields, &in); err != nil {
			return fmt.Errorf("fields of a role %s (%s): %w", as, Clause(as), err)
		}
		_, err = ReadLineClasses(output, len(in.Lines))
	case abi.RoleModel:
		_, err = ReadReply(output)
	}
	if err != nil {
		return fmt.Errorf("output of a role %s (%s): %w", as, Clause(as), err)
	}
	return nil
}
