package run

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A plan describes a run before it starts, as far as it is known.
type plan struct {
	Sentinel  sentinels.ID               `json:"sentinel"`
	Source    string                     `json:"source"`
	Revision  int                        `json:"revision,omitempty"`
	Workspace string                     `json:"workspace"`
	Loop      string                     `json:"loop"`
	Limits    map[string]any             `json:"limits,omitempty"`
	Inputs    map[string]json.RawMessage `json:"inputs"`
	Missing   []string                   `json:"missing,omitempty"` // required inputs without a value
	Variables map[string]json.RawMessage `json:"variables,omitempty"`
	Steps     []planStep                 `json:"steps"`
	Plugins   []plugin.Info              `json:"plugins"` // those the steps need, with what they are granted
	Warnings  sentinels.Problems         `json:"warnings,omitempty"`
}

type planStep struct {
	Address   string             `json:"address"`
	Type      sentinels.StepType `json:"type"`
	Name      string             `json:"name,omitempty"`
	Plugin    string             `json:"plugin"`
	Condition string             `json:"condition,omitempty"`
	OutputTo  string             `json:"outputTo,omitempty"`
	Commands  []planCommand      `json:"commands,omitempty"`
	Steps     []planStep         `json:"steps,omitempty"`
}

// planCommand is a command that a step names, or that its model may call.
type planCommand struct {
	Name   string `json:"name"`
	Access string `json:"access"` // reads or changes
	By     string `json:"by"`     // step or model
}

// dryRun shows the plan of a run. It uses a temporary store; the store of the project is
// only read, for a stored definition.
func (a verbs) dryRun(ctx context.Context, target string, f *runFlags) (err error) {
	src, err := a.ReadTrusted(target)
	if err == nil && src == nil {
		src, err = a.newest(ctx, target)
	}
	if err != nil {
		return err
	}
	s, err := a.Scratch(ctx)
	if err != nil {
		return err
	}
	defer a.CloseSession(s, &err)
	def, problems := s.Process.Host().Runtime().Decode(src.Text, src.File)
	if err := problems.Err(); err != nil {
		return err
	}
	g, err := a.values(def, f)
	if err != nil {
		return err
	}
	v, err := a.Validation(ctx, s, src, output.SortedKeys(g.variables)...)
	if err != nil {
		return err
	}
	p := a.planOf(s, src, def, g)
	p.Warnings = v.Problems
	if a.Flags.Output != output.FormatTable {
		return a.WriteJSON(p)
	}
	return a.showPlan(p)
}

// newest reads a stored definition.
func (a verbs) newest(ctx context.Context, name string) (src *app.Source, err error) {
	s, err := a.Connect(ctx, true)
	if err != nil {
		return nil, err
	}
	defer a.CloseSession(s, &err)
	src, err = a.StoredSource(ctx, s, name)
	if err == nil && src == nil {
		err = a.NoSentinel(name, &abi.Error{Code: abi.NotFound})
	}
	return src, err
}

// planOf returns the plan. A missing input is part of it and no error.
func (a verbs) planOf(s *app.Session, src *app.Source, def *sentinels.Definition, g given) plan {
	rt := s.Process.Host().Runtime()
	p := plan{
		Sentinel: def.ID, Source: src.File, Revision: src.Revision, Workspace: workspaceOf(a.base(src, def), def), Loop: loopText(def.Loop), Limits: limitsOf(def),
		Inputs: map[string]json.RawMessage{}, Variables: g.variables,
	}
	if p.Source == "" {
		p.Source = "store"
	}
	for _, name := range output.SortedKeys(def.Inputs) {
		in := def.Inputs[name]
		switch v, ok := g.inputs[name]; {
		case ok:
			p.Inputs[name] = v
		case in.Default != nil:
			p.Inputs[name] = in.Default
		case in.Required:
			p.Missing = append(p.Missing, name)
		}
	}
	b := planner{types: rt.Types(), registry: s.Process.Host().Commands(), plugins: map[string]bool{}}
	for _, list := range def.Lists() {
		p.Steps = append(p.Steps, b.steps(list.Steps, list.Prefix())...)
	}
	for _, info := range rt.Plugins() {
		if b.plugins[info.Name] {
			p.Plugins = append(p.Plugins, info)
		}
	}
	return p
}

// workspaceOf returns the workspace of a run of def, relative to base.
func workspaceOf(base string, def *sentinels.Definition) string {
	if filepath.IsAbs(def.Workspace) {
		return filepath.Clean(def.Workspace)
	}
	return filepath.Join(base, def.Workspace)
}

type planner struct {
	types    *sentinels.TypeSet
	registry *command.Registry
	plugins  map[string]bool // the plugins of the steps
}

// steps plans one list and the lists nested in it, and collects the plugins.
func (b *planner) steps(list []sentinels.Step, prefix string) []planStep {
	out := make([]planStep, 0, len(list))
	for i := range list {
		s := &list[i]
		at := prefix + strconv.Itoa(i)
		ps := planStep{Address: at, Type: s.Type, Name: s.Name, Condition: s.Condition, OutputTo: s.OutputTo, Commands: b.commands(s)}
		if ps.Name == "" {
			ps.Name = s.ID
		}
		if spec, ok := b.types.Lookup(s.Type); ok {
			ps.Plugin = spec.Plugin
			b.plugins[spec.Plugin] = true
		}
		for _, field := range slices.SortedFunc(maps.Keys(s.Blocks), compareFields) {
			ps.Steps = append(ps.Steps, b.steps(s.Blocks[field], at+"."+field+".")...)
		}
		out = append(out, ps)
	}
	return out
}

// compareFields orders the names of nested lists: from z to a, which puts "then"
// before "else", and the branches of one field by their numbers.
func compareFields(x, y string) int {
	xName, xIndex, _ := strings.Cut(x, ".")
	yName, yIndex, _ := strings.Cut(y, ".")
	return cmp.Or(cmp.Compare(yName, xName), cmp.Compare(len(xIndex), len(yIndex)), cmp.Compare(xIndex, yIndex))
}

// commands finds the commands that a step names in the fields "command" and
// "tools". The commands that a plugin calls dynamically are not known.
func (b *planner) commands(s *sentinels.Step) []planCommand {
	var out []planCommand
	var name string
	if json.Unmarshal(s.Fields["command"], &name) == nil {
		if c, ok := b.registry.Lookup(name); ok {
			out = append(out, planCommand{name, string(c.Effect), "step"})
		}
	}
	var tools []string
	if json.Unmarshal(s.Fields["tools"], &tools) == nil && len(tools) > 0 {
		for _, c := range b.registry.Offer(tools) {
			out = append(out, planCommand{c.Name, string(c.Effect), "model"})
		}
	}
	return out
}

// loopText describes a loop.
func loopText(l sentinels.Loop) string {
	switch l.Type {
	case sentinels.LoopCount:
		return "count " + string(l.Max)
	case sentinels.LoopUntil, sentinels.LoopWhile:
		return string(l.Type) + " " + l.Check
	case sentinels.LoopContinuous:
		if l.IntervalMs > 0 {
			return fmt.Sprintf("continuous, every %d ms", l.IntervalMs)
		}
	case sentinels.LoopEvent:
		return "event " + l.Event
	case "":
		return string(sentinels.LoopOnce)
	}
	return string(l.Type)
}

// limitsOf returns the limits that the definition sets, without those of the host.
func limitsOf(d *sentinels.Definition) map[string]any {
	out := map[string]any{}
	put := func(name string, v float64) {
		if v > 0 {
			out[name] = v
		}
	}
	put("maxIterations", float64(d.Safety.MaxIterations))
	put("timeoutMs", float64(d.Safety.TimeoutMs))
	put("maxStepTimeoutMs", float64(d.Safety.MaxStepTimeoutMs))
	put("maxMemoryMb", float64(d.Safety.MaxMemoryMB))
	put("maxSteps", float64(d.Safety.MaxSteps))
	put("budget.tokens", float64(d.Budget.Tokens))
	put("budget.costUsd", d.Budget.CostUSD)
	put("budget.calls", float64(d.Budget.Calls))
	return out
}

// showPlan draws a plan as a tree.
func (a verbs) showPlan(p plan) error {
	var b output.Page
	paint := a.PaintOut
	b.Printf("%s  from %s", paint.Strong(output.Escape(p.Sentinel)), p.Source)
	if p.Revision > 0 {
		b.Printf("  revision %d", p.Revision)
	}
	b.Printf("\nworkspace  %s\nloop       %s\n", p.Workspace, p.Loop)
	for _, name := range output.SortedKeys(p.Limits) {
		b.Printf("limit      %s %v\n", name, p.Limits[name])
	}
	for _, name := range output.SortedKeys(p.Inputs) {
		b.Printf("input      %s = %s\n", name, output.ClipJSON(p.Inputs[name], 80))
	}
	for _, name := range p.Missing {
		b.Printf("input      %s %s\n", name, paint.Bad("has no value and needs one"))
	}
	for _, name := range output.SortedKeys(p.Variables) {
		b.Printf("variable   %s = %s\n", name, output.ClipJSON(p.Variables[name], 80))
	}
	b.Add("steps\n")
	a.planTree(&b, p.Steps, "")
	for _, plugin := range p.Plugins {
		b.Printf("plugin     %s %s\n", plugin.Name, plugin.Version)
		for _, permission := range plugin.Permissions {
			b.Printf("  may use  %s %s\n", strings.TrimSpace(permission.Use+" "+strings.Join(permission.Names, " ")), paint.Dim("("+output.Escape(permission.Reason)+")"))
		}
	}
	if err := a.Out.Write(b.Text()); err != nil {
		return err
	}
	a.ShowProblems(p.Warnings)
	return nil
}

// planTree draws a list and the lists nested in it. Addresses are those of problems,
// traces and step edits.
func (a verbs) planTree(b *output.Page, steps []planStep, indent string) {
	paint := a.PaintOut
	for i, s := range steps {
		branch, below := "├─ ", "│  "
		if i == len(steps)-1 {
			branch, below = "└─ ", "   "
		}
		b.Printf("%s%s%s %s", indent, branch, s.Address, s.Type)
		if s.Name != "" {
			b.Printf(" %s", paint.Strong(output.Escape(s.Name)))
		}
		b.Printf("  %s", paint.Dim("plugin "+output.Escape(s.Plugin)))
		if s.Condition != "" {
			b.Printf("  if %s", output.Clip(s.Condition, 60))
		}
		if s.OutputTo != "" {
			b.Printf("  -> $%s", s.OutputTo)
		}
		b.Add("\n")
		for _, c := range s.Commands {
			text := output.Escape(c.Access)
			if c.Access == "changes" {
				text = paint.Warn(text)
			}
			who := ""
			if c.By == "model" {
				who = ", if its model wants"
			}
			b.Printf("%s%s   calls %s  %s%s\n", indent, below, c.Name, text, who)
		}
		a.planTree(b, s.Steps, indent+below)
	}
}
