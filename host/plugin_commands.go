package host

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// pluginCommands are the commands that plugins provide, clause A9.2 of sdk/ABI.md. Each call
// executes the step type as a run, below the run that calls.
type pluginCommands Host

var _ command.Source = (*pluginCommands)(nil)

// Commands returns those of plugins that are live and allowed to provide them now.
func (h *pluginCommands) Commands() []command.Command {
	var list []command.Command
	provided := h.rt.Provided(abi.RoleCommand)
	for _, p := range provided {
		list = append(list, h.command(p, h.effect(p, provided, nil)))
	}
	return list
}

// effect returns what a command of a plugin does: the most that the commands do which it may
// call, at any depth. seen are the commands on the way to it.
func (h *pluginCommands) effect(p plugin.Provided, all []plugin.Provided, seen []string) command.Effect {
	most := command.Changes
	if p.ReadOnly {
		most = command.Reads
	}
	for _, name := range p.Commands {
		if slices.Contains(seen, name) {
			continue
		}
		called := command.Changes // the most that a pattern matches
		if i := slices.IndexFunc(all, func(other plugin.Provided) bool { return other.Name == name }); i >= 0 {
			called = h.effect(all[i], all, append(seen, name))
		} else if family, _, _ := strings.Cut(name, "/"); command.BuiltIn(family) {
			if c, ok := h.registry.Lookup(name); ok {
				called = c.Effect
			}
		}
		if !called.Matchable() {
			return command.Executes
		}
	}
	return most
}

// Absent returns why a command of a plugin is not offered.
func (h *pluginCommands) Absent(name string) error {
	if e := h.rt.Unprovided(abi.RoleCommand, name); e != nil {
		return e
	}
	return nil
}

// command makes a command of a role. It is private, so that a model gets it only where a
// definition names it or its family, and idempotent, because a repeated call finds its run.
func (h *pluginCommands) command(p plugin.Provided, effect command.Effect) command.Command {
	opt := command.Options{
		Effect: effect, Idempotent: true, AsRun: true, Private: true, Aliases: p.Aliases,
		Version: strings.Join(append([]string{p.Digest}, p.Commands...), " "),
	}
	return command.NewDynamic(p.Name, p.Summary, closed(p.Fields), p.Output, opt, func(ctx context.Context, call *command.Call) (json.RawMessage, error) {
		c := runtime.StepCall{Type: p.Type, Fields: call.Params, Name: p.Name, Key: call.Key, Workspace: call.Workspace, As: call.As}
		if call.By == command.ByAgent {
			c.As = call.Who()
		}
		// Files and tickets hold the plugin to the rules for models, if they hold its caller:
		// otherwise a model could read through it what it must not read itself.
		if call.Bounded() {
			c.Within = append([]string{}, p.Commands...)
		}
		return h.rt.CallStep(ctx, c)
	})
}

// closed returns a schema of parameters that says what holds for every step: other fields
// are accepted only if the schema says so.
func closed(schema json.RawMessage) json.RawMessage {
	var keys map[string]json.RawMessage
	if json.Unmarshal(schema, &keys) != nil || keys["additionalProperties"] != nil {
		return schema
	}
	keys["additionalProperties"] = json.RawMessage("false")
	text, err := json.Marshal(keys)
	if err != nil {
		return schema
	}
	return text
}

// checkRole returns why a role of a plugin's step type cannot be used here.
func checkRole(p plugin.Provided) error {
	if p.As != abi.RoleCommand {
		return nil
	}
	if command.BuiltIn(p.Plugin) {
		return &abi.Error{Code: abi.Denied, Message: fmt.Sprintf("the commands %s/* are part of the program", p.Plugin), Hint: "give the plugin another name in its manifest"}
	}
	if err := command.Check((&pluginCommands{}).command(p, command.Executes)); err != nil {
		return &abi.Error{Code: abi.Plugin, Message: fmt.Sprintf("command %q: %v", p.Name, err)}
	}
	return nil
}
