package pluginset

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime/external"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// maxDeniedTools is the maximum number of commands that one problem names.
const maxDeniedTools = 5

// checkGrant adds a problem for each command that a step names and its plugin may not
// call. Names that are known only when the step executes, such as those in variables,
// are checked then.
func (v *validation) checkGrant(mod *Module, at string, step *sentinels.Step) {
	if mod.Trusted() {
		return
	}
	add := func(field string, e *abi.Error) {
		v.problems = append(v.problems, sentinels.Problem{Path: joinPath(at, field), Kind: "grant", Message: e.Message, Hint: e.Hint})
	}
	_, marks := mod.Fields(step.Type)
	fields := make([]string, 0, len(marks))
	for field := range marks {
		fields = append(fields, field)
	}
	slices.Sort(fields)
	for _, field := range fields {
		switch marks[field] {
		case abi.MarkParams:
			var name string
			if json.Unmarshal(step.Fields["command"], &name) != nil || name == "" || strings.Contains(name, "$") {
				continue
			}
			if e := mod.DeniedCommand(v.commandInfo(name)); e != nil {
				add("command", e)
			}
		case abi.MarkTools:
			if e := v.deniedTools(mod, step.Fields[field]); e != nil {
				add(field, e)
			}
		}
	}
}

// deniedTools returns an error if a list of tools contains commands that the plugin may
// not call.
func (v *validation) deniedTools(mod *Module, raw json.RawMessage) *abi.Error {
	var tools []string
	if v.commands == nil || json.Unmarshal(raw, &tools) != nil {
		return nil // not a literal list: the schema or the run reports it
	}
	tools = slices.DeleteFunc(tools, func(t string) bool { return strings.Contains(t, "$") })
	if len(tools) == 0 {
		return nil
	}
	var denied []string
	for _, info := range v.commands.Tools(tools) {
		if mod.DeniedCommand(info) != nil {
			denied = append(denied, info.Name)
		}
	}
	if len(denied) == 0 {
		return nil
	}
	list := strings.Join(denied[:min(len(denied), maxDeniedTools)], ", ")
	if more := len(denied) - maxDeniedTools; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	e := mod.Refusal("plugin %q is not allowed the commands %s", mod.Manifest().Name, list)
	e.Hint = "name only tools that the plugin is allowed: sentinel plugin list"
	return e
}

// commandInfo returns the description of a command, with only its name if it is
// unknown.
func (v *validation) commandInfo(name string) external.CommandInfo {
	if v.commands != nil {
		if info, ok := v.commands.Lookup(name); ok {
			return info
		}
	}
	return external.CommandInfo{Name: name}
}
