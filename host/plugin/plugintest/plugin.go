package plugintest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime/guest"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// limit ends a step that hangs; waits are faked, so no step takes long.
const limit = time.Minute

// A Plugin is a loaded module with the field schemas of its manifest. It is an
// [sdktest.Target]. The caller closes it.
//
// # Concurrency
//
// A Plugin is safe for concurrent use; each step has an instance of its own,
// unless it was loaded with Reuse.
type Plugin struct {
	Module *guest.Module
	types  *sentinels.TypeSet
	pure   bool // each step has a new instance
}

// Load compiles and describes a module as the engine does, except for grants.
func Load(ctx context.Context, h *guest.Host, module []byte, opt guest.LoadOptions) (*Plugin, error) {
	m, err := h.Load(ctx, module, opt)
	if err != nil {
		return nil, err
	}
	manifest := m.Manifest()
	specs := manifest.Types()
	for i := range specs {
		specs[i].Digest = m.Digest()
	}
	types, err := sentinels.NewTypeSet(specs)
	if err != nil {
		m.Release()
		return nil, &abi.Error{Code: abi.BadFields, Message: fmt.Sprintf("load plugin %q: %v", manifest.Name, err),
			Hint: "the manifest's rules are in clause A2 of sdk/ABI.md"}
	}
	return &Plugin{Module: m, types: types, pure: !opt.Reuse}, nil
}

// Close releases the module.
func (p *Plugin) Close() { p.Module.Release() }

// Fields converts the fields as [sdktest.GuestFields] does and checks them against their
// schema, as the engine does before a step starts.
func (p *Plugin) Fields(step string, raw json.RawMessage) (json.RawMessage, error) {
	spec, ok := p.types.Lookup(sentinels.StepType(step))
	if !ok {
		var names []string
		for _, t := range p.types.Types() {
			names = append(names, string(t))
		}
		return nil, &abi.Error{Code: abi.BadFields, Field: "type", Message: fmt.Sprintf("plugin %q has no step type %q", p.Module.Manifest().Name, step),
			Hint: "it has " + strings.Join(names, ", ")}
	}
	given, err := sdktest.GuestFields(raw, spec.Aliases, spec.Mark)
	if err != nil {
		return nil, err
	}
	if err := closed(spec, given); err != nil {
		return nil, err
	}
	text, err := json.Marshal(given)
	if err != nil {
		return nil, err
	}
	if err := spec.CheckFields(text); err != nil {
		return nil, asBadFields(err)
	}
	return text, nil
}

// Role returns the role of a step type, "" for none.
func (p *Plugin) Role(step string) abi.Role {
	if s := p.step(step); s != nil && s.Provides != nil {
		return s.Provides.As
	}
	return ""
}

// CheckOutput checks an output against the schema in the manifest.
func (p *Plugin) CheckOutput(step string, output json.RawMessage) error {
	s := p.step(step)
	if s == nil || len(s.Output) == 0 {
		return nil
	}
	return command.ValidateJSON(s.Output, output)
}

// step returns a step type of the manifest, nil if it does not have it.
func (p *Plugin) step(name string) *guest.StepType {
	steps := p.Module.Manifest().Steps
	for i := range steps {
		if steps[i].Type == name {
			return &steps[i]
		}
	}
	return nil
}

// Execute executes one step in the sandbox that a run has.
func (p *Plugin) Execute(ctx context.Context, input []byte, call sdktest.CallFunc) (sdktest.Execution, error) {
	res, err := p.Module.Run(ctx, guest.Invocation{
		Input: input, Seed: 1, ClockBase: sdktest.Base, Timeout: limit, Pure: p.pure,
		Call: func(_ context.Context, function string, request []byte) (guest.Reply, error) {
			answer, now, err := call(function, request)
			return guest.Reply{Body: answer, Now: now}, err
		},
	})
	return sdktest.Execution{Output: res.Output, Stderr: res.Stderr, MemoryBytes: res.MemoryBytes}, err
}

// Validate returns the problems that the plugin's validate export finds.
func (p *Plugin) Validate(ctx context.Context, step string, fields json.RawMessage) (json.RawMessage, error) {
	if fields == nil {
		fields = json.RawMessage(`{}`)
	}
	found, err := p.Module.Validate(ctx, step, fields)
	switch {
	case err != nil:
		return nil, err
	case found == nil:
		return json.RawMessage(`[]`), nil
	}
	return json.Marshal(found)
}

// closed refuses a field that the type does not have. A definition with one is
// refused as a whole, so a guest never gets it.
func closed(spec *sentinels.TypeSpec, given map[string]json.RawMessage) error {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Additional json.RawMessage            `json:"additionalProperties"`
	}
	if err := json.Unmarshal(spec.Fields, &schema); err != nil || string(schema.Additional) != "false" {
		return err
	}
	known := slices.Sorted(maps.Keys(schema.Properties))
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if slices.Contains(known, name) {
			continue
		}
		e := &abi.Error{Code: abi.BadFields, Field: name, Message: fmt.Sprintf("step type %q has no field %q", spec.Type, name)}
		if near := sentinels.Suggest(name, known); len(near) > 0 {
			e.Hint = fmt.Sprintf("did you mean %q?", near[0])
		}
		return e
	}
	return nil
}

// asBadFields is the error with which the engine ends a step whose fields do
// not match their schema.
func asBadFields(err error) error {
	e := &abi.Error{Code: abi.BadFields, Message: err.Error(), Permanent: true}
	var problems sentinels.Problems
	if errors.As(err, &problems) && len(problems) > 0 {
		e.Field, e.Hint = problems[0].Path, problems[0].Hint
	}
	return e
}

var _ sdktest.RoleTarget = (*Plugin)(nil)
