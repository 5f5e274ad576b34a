// Package validation checks definitions against what a host has: commands and their
// parameters, tools, models, stored sentinels, and the fields of outputs that are known.
package validation

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
)

// A Checker finds the problems of definitions. It makes no requests.
//
// # Concurrency
//
// Safe for concurrent use if its functions are.
type Checker struct {
	// Commands returns the registry, nil while the host is being opened: then commands and
	// tools are not checked.
	Commands func() *command.Registry
	// Model returns what is wrong with the name of a model, and whether its price is known.
	// Default nil: any name is accepted.
	Model func(ref string) (problem *sentinels.Problem, priced bool)
	// Classifier returns why rules cannot name an output classifier, nil if they can. Default
	// nil: any name is accepted.
	Classifier func(name string) error
	// Stored reports whether a sentinel is stored.
	Stored func(id sentinels.ID) bool
	// Near returns ids of stored sentinels that are similar to one that is not.
	Near func(id sentinels.ID) []string
	// Secret returns why a sentinel cannot use a secret here, nil if it can. Default nil: it can.
	Secret func(id sentinels.ID, name string) *sentinels.Problem
	// Request returns why a request to a URL, which has no reference in its host, is refused here
	// whatever happens, nil if that is not known. Default nil: no URL is.
	Request func(address string) *sentinels.Problem
	// Withheld returns those variables of shell lines that are set on the host and that steps
	// of the definition do not get. Default nil: there are none.
	Withheld func(d *sentinels.Definition, names []string) []Withheld
	// Unnotified returns why people get no messages about runs of d here, "" if they may, and the mend.
	// Default nil: they may.
	Unnotified func(d *sentinels.Definition) (why, hint string)
	// Child returns the definition of a stored sentinel, nil if it cannot be read.
	Child func(id sentinels.ID) *sentinels.Definition
	// EventData returns the fields that $event.data can have in runs that a kind of trigger
	// starts, nil if it may be anything. Default nil: it may be, of all kinds.
	EventData func(kind string) []string
}

// modelStep is the step type with a field for the name of a model.
const modelStep = "llm"

// Definition returns all problems of d, without those of definitions nested in it. If ctx
// ends before, it returns what it has found so far.
func (c Checker) Definition(ctx context.Context, d *sentinels.Definition, types *sentinels.TypeSet) sentinels.Problems {
	v := &check{Findings: sentinels.NewFindings(ctx), Checker: c, types: types, definition: d, commands: c.Commands()}
	if v.commands != nil {
		v.highlights(d.Tools)
	}
	d.EachStep(func(path string, s *sentinels.Step) {
		if v.Ended() {
			return
		}
		v.absent(path, s)
		if v.commands == nil {
			return
		}
		spec, ok := types.Lookup(s.Type)
		if !ok {
			return
		}
		v.rules(path, s)
		for _, mark := range spec.Marks() {
			switch mark.Mark {
			case abi.MarkParams:
				v.call(path, mark.Path, s)
			case abi.MarkTools:
				v.tools(path+"."+mark.Path, s.Fields[mark.Path], sentinels.KindUnknown)
			}
		}
	})
	if v.commands != nil {
		v.outputs()
	}
	if len(d.Notify) > 0 && v.Unnotified != nil {
		if why, hint := v.Unnotified(d); why != "" {
			v.add("notify", sentinels.KindWarning, hint, "these messages are not sent here: %s", why)
		}
	}
	if v.Child != nil {
		v.named()
	}
	return v.Problems
}

// Absent returns the problems of kind [sentinels.KindAbsent].
func (c Checker) Absent(d *sentinels.Definition, types *sentinels.TypeSet) sentinels.Problems {
	v := &check{Findings: sentinels.NewFindings(context.Background()), Checker: c, types: types, definition: d}
	d.EachStep(v.absent)
	return slices.DeleteFunc(v.Problems, func(p sentinels.Problem) bool { return p.Kind != sentinels.KindAbsent })
}

// A check collects the problems of one definition.
type check struct {
	Checker
	types      *sentinels.TypeSet
	definition *sentinels.Definition
	commands   *command.Registry

	commandNames []string // of commands, once they were needed
	*sentinels.Findings
}

// names returns those of the commands.
func (v *check) names() []string {
	if v.commandNames == nil {
		v.commandNames = v.commands.Names()
	}
	return v.commandNames
}

func (v *check) add(path string, kind sentinels.Kind, hint, format string, args ...any) {
	v.Add(sentinels.Problem{Path: path, Kind: kind, Hint: hint, Message: fmt.Sprintf(format, args...)})
}

// absent checks what may be missing on this host although it exists: models and stored
// sentinels.
func (v *check) absent(path string, s *sentinels.Step) {
	if s.Type == modelStep && v.Model != nil {
		v.models(path+".model", s.Fields["model"])
	}
	if origin := s.Origin(); origin != "" && v.Request != nil {
		if p := v.Request(origin); p != nil {
			p.Path = path + "." + s.OriginPath()
			v.Add(*p)
		}
	}
	spec, ok := v.types.Lookup(s.Type)
	if !ok || v.Stored == nil {
		return
	}
	for _, mark := range spec.Marks() {
		if mark.Mark != abi.MarkDefinition {
			continue
		}
		id := sentinels.RefOf(s.Fields[mark.Path])
		if !id.Valid() || id == v.definition.ID { // an invalid one is an error already
			continue
		}
		if !v.Stored(id) {
			hint := "a run can start when it is stored: sentinel create FILE"
			if v.Near != nil && v.Suggests() {
				if near := v.Near(id); len(near) > 0 {
					hint = fmt.Sprintf("did you mean %q? Else %s", near[0], hint)
				}
			}
			v.add(path+"."+mark.Path+".$ref", sentinels.KindAbsent, hint, "no sentinel %q is stored here", id)
		}
	}
}

// named warns of texts of named sentinels that refer to variables of the definition which
// starts them: such a sentinel sees only its inputs.
func (v *check) named() {
	own := sentinels.VariablesOf(v.definition, v.types)
	unset := map[sentinels.ID][]string{} // by child
	v.definition.EachStep(func(path string, s *sentinels.Step) {
		spec, ok := v.types.Lookup(s.Type)
		if !ok {
			return
		}
		for _, mark := range spec.Marks() {
			if mark.Mark != abi.MarkDefinition {
				continue
			}
			id := sentinels.RefOf(s.Fields[mark.Path])
			if id == "" || id == v.definition.ID {
				continue
			}
			names, known := unset[id]
			if !known {
				if child := v.Child(id); child != nil && !v.Ended() {
					names = sentinels.VariablesOf(child, v.types).Unset()
				}
				unset[id] = names
			}
			for _, name := range names {
				if own.Set(name) {
					v.add(path+"."+mark.Path+".$ref", sentinels.KindWarning,
						fmt.Sprintf(`declare the input %q in %q, give it with "inputs": {%q: "$%s"}, and write $inputs.%s there`, name, id, name, name, name),
						"sentinel %q refers to $%s, which is set here; a named sentinel sees only its inputs", id, name)
				}
			}
		}
	})
}

// models checks the name of a model, or of each in a list.
func (v *check) models(path string, raw json.RawMessage) {
	refs := []string{""}
	if len(raw) > 0 {
		var one string
		if json.Unmarshal(raw, &one) == nil {
			refs[0] = one
		} else if json.Unmarshal(raw, &refs) != nil {
			return // the schema reports it
		}
	}
	var absent sentinels.Problems
	for _, ref := range refs {
		if reference.Contains(ref) {
			continue
		}
		if v.Ended() {
			return
		}
		problem, priced := v.Model(ref)
		if problem != nil && problem.Kind == sentinels.KindAbsent {
			problem.Path = path
			absent = append(absent, *problem)
		} else if problem != nil {
			v.add(path, problem.Kind, problem.Hint, "%s", problem.Message)
		} else if !priced && v.definition.Budget.CostUSD > 0 {
			v.add(path, sentinels.KindWarning, "add it to models.known in the configuration with its price per million tokens, or limit tokens in place of costUsd",
				"the price of model %q is not known, so budget.costUsd refuses its calls", ref)
		}
	}
	if len(absent) < len(refs) { // another model of the list answers
		for i := range absent {
			absent[i].Kind = sentinels.KindWarning
		}
	}
	for _, p := range absent {
		v.Add(p)
	}
}

// onlyPersons is the problem of a command with the effect [command.Decides].
const onlyPersons = "%q is a decision that only a person makes: calls of steps and models are refused"

// call checks the command of a step and the parameters in field.
func (v *check) call(path, field string, s *sentinels.Step) {
	var name string
	if json.Unmarshal(s.Fields["command"], &name) != nil || name == "" || reference.Contains(name) {
		return
	}
	c, ok := v.commands.Lookup(name)
	if !ok {
		v.unknown(path+".command", sentinels.KindUnknown, name, "command", v.commandHint)
		return
	}
	if c.Effect == command.Decides {
		v.add(path+".command", sentinels.KindValue, command.PersonHint(name)+`; a step of type "approve" asks one within a run`, onlyPersons, name)
		return
	}
	for _, p := range v.commands.CheckParams(name, s.Fields[field], reference.Contains) {
		switch {
		case p.Path == "" && s.Fields[field] == nil:
			p.Path = path
		case p.Path == "":
			p.Path = path + "." + field
		default:
			p.Path = path + "." + field + "." + p.Path
		}
		v.Add(p)
	}
}

// unknown reports a command that does not exist, or that a plugin has and cannot provide.
func (v *check) unknown(path string, kind sentinels.Kind, name, what string, hint func(name string) string) {
	if e := v.commands.Absent(name); e != nil {
		v.add(path, kind, e.Hint, "%s", e.Message)
		return
	}
	text := ""
	if v.Suggests() {
		text = hint(name)
	}
	v.add(path, kind, text, "unknown %s %q", what, name)
}

// commandHint says what was probably meant by the name of a command that does not exist.
func (v *check) commandHint(name string) string {
	return command.UnknownHint(name, v.names(), `did you mean type "shell"?`)
}

// tools checks the names and patterns in an allow-list.
func (v *check) tools(path string, raw json.RawMessage, kind sentinels.Kind) {
	var names []string
	if json.Unmarshal(raw, &names) != nil {
		return // the schema reports it
	}
	for i, name := range names {
		if v.Ended() {
			return
		}
		if !reference.Contains(name) {
			v.tool(fmt.Sprintf("%s[%d]", path, i), name, kind)
		}
	}
}

// highlights checks the definition's own list, which restricts nothing.
func (v *check) highlights(names []string) {
	for i, name := range names {
		if v.Ended() {
			return
		}
		v.tool(fmt.Sprintf("tools[%d]", i), name, sentinels.KindWarning)
	}
}

func (v *check) tool(path, name string, kind sentinels.Kind) {
	if name == "*" {
		return
	}
	if family, pattern := strings.CutSuffix(name, "/*"); pattern {
		names := v.names()
		commands, families := command.Like(family, names)
		if !slices.ContainsFunc(commands, func(c string) bool { return strings.HasPrefix(c, family+"/") }) {
			hint := ""
			if near := v.Suggest(family, families); len(near) > 0 {
				hint = fmt.Sprintf("did you mean %q?", near[0]+"/*")
			} else if v.Suggests() {
				hint = command.Known(family, names)
			}
			v.add(path, kind, hint, "no command is in %q", name)
		}
		return
	}
	c, ok := v.commands.Lookup(name)
	if ok && c.Effect == command.Decides { // the calls are refused, and the model reads why
		v.add(path, sentinels.KindWarning, command.PersonHint(name), onlyPersons, name)
	}
	if !ok {
		v.unknown(path, kind, name, "tool", func(name string) string {
			names := v.names()
			if near := command.Nearest(name, names); near != "" {
				return fmt.Sprintf("did you mean %q?", near)
			}
			return command.Known(name, names)
		})
	}
}
