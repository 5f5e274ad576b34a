package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/client"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// inputSchema is the part of a command's schema that a command line needs.
type inputSchema struct {
	Properties map[string]property `json:"properties"`
	Required   []string            `json:"required"`
	Additional json.RawMessage     `json:"additionalProperties"`
}

type property struct {
	Type json.RawMessage `json:"type"` // a name or a list of names
}

// types returns the JSON types of a parameter; empty means any.
func (p property) types() []string {
	var one string
	if json.Unmarshal(p.Type, &one) == nil && one != "" {
		return []string{one}
	}
	var many []string
	_ = json.Unmarshal(p.Type, &many) // a schema without a type accepts anything
	return many
}

// params makes the parameters of a command from "--name=value", "--name value",
// "--flag" for a boolean, and "--json". own are the flags of sentinel itself.
func (a verbs) params(c client.Command, own *pflag.FlagSet, args []string) (json.RawMessage, error) {
	var schema inputSchema
	if err := json.Unmarshal(c.Input, &schema); err != nil {
		return nil, fmt.Errorf("read the schema of %q: %w", c.Name, err)
	}
	out := map[string]json.RawMessage{}
	for i := 0; i < len(args); i++ {
		name, ok := strings.CutPrefix(args[i], "--")
		if !ok || name == "" {
			return nil, app.NewUsageError(fmt.Sprintf("exec %s: %q is not --PARAMETER=VALUE", c.Name, args[i]), "flags of sentinel itself precede the command: sentinel exec -o json "+c.Name)
		}
		name, text, valued := strings.Cut(name, "=")
		p, known := schema.Properties[name]
		if !known && name != "json" {
			if err := schema.unknown(c.Name, name); err != nil {
				if own.Lookup(name) != nil {
					err.Hint = ownFlagHint(c.Name, args[i:])
				}
				return nil, err
			}
		}
		if !valued {
			next := i+1 < len(args) && !strings.HasPrefix(args[i+1], "--")
			switch {
			case slices.Contains(p.types(), "boolean") && !(next && (args[i+1] == "true" || args[i+1] == "false")):
				text = "true"
			case next:
				i++
				text = args[i]
			default:
				return nil, app.NewUsageError(fmt.Sprintf("exec %s: --%s has no value", c.Name, name), "")
			}
		}
		if name == "json" && !known {
			if err := a.allParams(text, out); err != nil {
				return nil, err
			}
			continue
		}
		value, err := p.value(text)
		if err != nil {
			return nil, app.NewUsageError(fmt.Sprintf("exec %s: --%s: %v", c.Name, name, err), "")
		}
		if old, twice := out[name]; twice {
			return nil, app.NewUsageError(fmt.Sprintf("exec %s: --%s is given twice: %s and %s", c.Name, name, output.ClipJSON(old, 40), output.ClipJSON(value, 40)), "a list is JSON: --"+name+"='[...]'")
		}
		out[name] = value
	}
	return json.Marshal(out)
}

// allParams reads --json into out.
func (a verbs) allParams(text string, out map[string]json.RawMessage) error {
	raw, err := a.JSONFlag("--json", text)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(raw, []byte("{")) {
		return app.NewUsageError("--json is not an object", "it contains all parameters by name")
	}
	return json.Unmarshal(raw, &out)
}

// value parses the text of a parameter: a string if only a string is accepted, JSON if
// it is JSON, else a string.
func (p property) value(text string) (json.RawMessage, error) {
	types := p.types()
	if slices.Contains(types, "string") {
		if len(types) == 1 || !json.Valid([]byte(text)) {
			return app.ValueOf(text, "string")
		}
	}
	return app.ValueOf(text, "")
}

// unknown refuses a parameter that the schema does not allow.
func (s inputSchema) unknown(command, name string) *app.UsageError {
	if additional := strings.TrimSpace(string(s.Additional)); len(s.Properties) == 0 || additional != "" && additional != "false" && !strings.HasPrefix(additional, `{"not"`) {
		return nil
	}
	names := slices.Sorted(maps.Keys(s.Properties))
	e := &app.UsageError{Text: fmt.Sprintf("exec %s: unknown parameter %q", command, name), Hint: "its parameters are " + strings.Join(names, ", ")}
	if near := sentinels.Suggest(name, names); len(near) > 0 {
		e.Hint = fmt.Sprintf("did you mean --%s?", near[0])
	}
	return e
}

// ownFlagHint says where a flag of sentinel itself stands, with which args begin.
func ownFlagHint(command string, args []string) string {
	flag := args[:1]
	if !strings.Contains(args[0], "=") && len(args) > 1 && !strings.HasPrefix(args[1], "--") {
		flag = args[:2]
	}
	line := "sentinel"
	for _, word := range flag {
		line += " " + output.Quote(word)
	}
	name, _, _ := strings.Cut(args[0], "=")
	return fmt.Sprintf("%s is a flag of sentinel itself and stands before the command: `%s exec %s`, then its parameters", name, line, command)
}
