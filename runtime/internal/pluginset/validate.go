package pluginset

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime/external"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Validate returns the problems that plugins find in the fields of their steps, and
// the commands that steps name and their plugins may not call. A plugin can say what a
// schema cannot, such as that one of two fields is needed. commands may be nil. A plugin
// is not asked about the steps at the paths for which broken is true: their fields do not
// match its schema.
func (s *Set) Validate(ctx context.Context, def *sentinels.Definition, commands external.Commands, broken func(path string) bool) sentinels.Problems {
	v := validation{commands: commands, table: s.Use(), broken: broken}
	defer s.Done(v.table)
	for _, list := range def.Lists() {
		v.steps(ctx, list.Key, list.Steps)
	}
	return v.problems
}

// A validation collects the problems of one definition.
type validation struct {
	commands external.Commands
	table    *Table
	broken   func(path string) bool
	problems sentinels.Problems
}

func (v *validation) steps(ctx context.Context, path string, steps []sentinels.Step) {
	for i := range steps {
		step, at := &steps[i], fmt.Sprintf("%s[%d]", path, i)
		mod, err := v.table.Lookup(step.Type)
		if err != nil {
			continue // decoding has reported it
		}
		v.checkGrant(mod, at, step)
		if !v.broken(at) {
			v.ask(ctx, mod, at, step)
		}
		names := make([]string, 0, len(step.Blocks))
		for name := range step.Blocks {
			names = append(names, name)
		}
		sort.Strings(names)
		for _, name := range names {
			v.steps(ctx, joinPath(at, sentinels.BlockPath(name)), step.Blocks[name])
		}
	}
}

// ask adds the problems that the plugin of a step finds.
func (v *validation) ask(ctx context.Context, mod *Module, at string, step *sentinels.Step) {
	_, marks := mod.Fields(step.Type)
	fields, err := guestFields(step, marks)
	if err == nil {
		found, failed := mod.Validate(ctx, string(step.Type), fields)
		for _, p := range found {
			v.problems = append(v.problems, sentinels.Problem{Path: joinPath(at, p.Field), Kind: "plugin", Message: p.Message, Hint: p.Hint})
		}
		err = failed
	}
	if err != nil {
		v.problems = append(v.problems, sentinels.Problem{Path: at, Kind: "plugin", Message: fmt.Sprintf("plugin of step type %q: %v", step.Type, err)})
	}
}

func joinPath(at, field string) string {
	if field == "" {
		return at
	}
	return at + "." + field
}

// guestFields returns a step's fields as a guest sees them while references are not
// resolved. Nested steps are replaced by their number.
func guestFields(step *sentinels.Step, marks map[string]string) (json.RawMessage, error) {
	out := make(map[string]json.RawMessage, len(step.Fields)+1)
	for name, raw := range step.Fields {
		out[name] = raw
	}
	AddCounts(out, step, marks)
	return json.Marshal(out)
}

// AddCounts replaces nested steps by their number.
func AddCounts(out map[string]json.RawMessage, step *sentinels.Step, marks map[string]string) {
	for name, mark := range marks {
		switch mark {
		case abi.MarkSteps:
			if steps, ok := step.Blocks[name]; ok {
				out[name] = fmt.Appendf(nil, `{"count":%d}`, len(steps))
			}
		case abi.MarkBranches:
			if counts := branchCounts(step, name); counts != nil {
				b, err := json.Marshal(map[string]any{"counts": counts})
				if err == nil {
					out[name] = b
				}
			}
		}
	}
}

// branchCounts returns the number of steps of each branch: a list, or an object by their names. It is nil if the
// step has no branches.
func branchCounts(step *sentinels.Step, field string) any {
	var list []int
	for i := 0; ; i++ {
		steps, ok := step.Blocks[fmt.Sprintf("%s.%d", field, i)]
		if !ok {
			break
		}
		list = append(list, len(steps))
	}
	if list != nil {
		return list
	}
	named := map[string]int{}
	for path, steps := range step.Blocks {
		if name, ok := strings.CutPrefix(path, field+"."); ok {
			named[name] = len(steps)
		}
	}
	if len(named) == 0 {
		return nil
	}
	return named
}
