package step

import (
	"slices"

	"github.com/sentinel-runtime/sentinel/runtime/external"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// The tools of a definition are highlights: they come first among the tools of each step,
// and a step whose model may call every public command may call them too, also those that
// have to be named. They never take a tool away.

// every is the pattern of all public commands.
const every = "*"

// modelTools returns the commands that the step's model may call; nil for every public one.
func (a *attempt) modelTools() []string {
	if a.tools != nil {
		return a.tools
	}
	highlights := a.run.Definition().Tools
	if len(highlights) == 0 || !a.takesTools() {
		return nil
	}
	return slices.Concat(highlights, []string{every})
}

// takesTools reports whether the step's type has a field with a list of tools.
func (a *attempt) takesTools() bool {
	_, marks := a.mod.Fields(a.step.Type)
	for _, mark := range marks {
		if mark == abi.MarkTools {
			return true
		}
	}
	return false
}

// offer returns the tools that a turn has, those of the definition first and in its order.
func (a *attempt) offer(requested []string) []external.CommandInfo {
	if all := a.modelTools(); a.tools == nil && all != nil && slices.Contains(requested, every) {
		requested = all
	}
	tools := a.svc.Commands.Tools(requested)
	highlights := a.run.Definition().Tools
	rank := make(map[string]int)
	for i, name := range slices.Backward(highlights) { // the first one that matches has precedence
		for _, info := range a.svc.Commands.Tools([]string{name}) {
			rank[info.Name] = i - len(highlights)
		}
	}
	slices.SortStableFunc(tools, func(x, y external.CommandInfo) int { return rank[x.Name] - rank[y.Name] })
	return tools
}
