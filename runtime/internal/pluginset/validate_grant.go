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

// maxDeniedTools bounds how many commands one problem names.
const maxDeniedTools = 5

// checkGrant finds commands that a step names and its plugin may not call. What
// only shows when the step runs, such as a name that a variable holds, is denied
// then.
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

// deniedTools returns the error of a list of tools that goes beyond what the
// plugin may call, since the model would be offered them in vain.
func (v *validation) deniedTools(mod *Module, raw json.RawMessage) *abi.Error {
	var tools []string
	if v.commands == nil || json.Unmarshal(raw, &tools) != nil {
		return nil // not a list as written: the schema or the run says so
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

// commandInfo returns what is known of a command by its name.
func (v *validation) commandInfo(name string) external.CommandInfo {
	if v.commands != nil {
		if info, ok := v.commands.Lookup(name); ok {
			return info
		}
	}
	return external.CommandInfo{Name: name}
}
