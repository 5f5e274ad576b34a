package runtime

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime/internal/pluginset"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// maxDeniedTools bounds how many commands one problem names.
const maxDeniedTools = 5

// checkGrant finds commands that a step names and its plugin may not call. What
// only shows when the step runs, such as a name that a variable holds, is denied
// then.
func (rt *Runtime) checkGrant(mod *pluginset.Module, at string, step *sentinels.Step) sentinels.Problems {
	if mod.Trusted() {
		return nil
	}
	var problems sentinels.Problems
	add := func(field string, e *abi.Error) {
		problems = append(problems, sentinels.Problem{Path: joinPath(at, field), Kind: "grant", Message: e.Message, Hint: e.Hint})
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
			if e := deniedCommand(mod, rt.commandInfo(name)); e != nil {
				add("command", e)
			}
		case abi.MarkTools:
			if e := rt.deniedTools(mod, step.Fields[field]); e != nil {
				add(field, e)
			}
		}
	}
	return problems
}

// deniedTools returns the error of a list of tools that goes beyond what the
// plugin may call, since the model would be offered them in vain.
func (rt *Runtime) deniedTools(mod *pluginset.Module, raw json.RawMessage) *abi.Error {
	var tools []string
	if rt.opt.Commands == nil || json.Unmarshal(raw, &tools) != nil {
		return nil // not a list as written: the schema or the run says so
	}
	tools = slices.DeleteFunc(tools, func(t string) bool { return strings.Contains(t, "$") })
	if len(tools) == 0 {
		return nil
	}
	var denied []string
	for _, info := range rt.opt.Commands.Tools(tools) {
		if deniedCommand(mod, info) != nil {
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
