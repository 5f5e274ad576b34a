package plugintest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime/guest"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A Plugin is a loaded module with what its manifest says of fields. Whoever
// loaded it closes it.
//
// # Concurrency
//
// A Plugin is safe for concurrent use; each step has an instance of its own,
// unless it was loaded with Reuse.
type Plugin struct {
	Module *guest.Module
	types  *sentinels.TypeSet
	pure   bool // each step has an instance that has run nothing before
}

// Load compiles and describes a module as the engine does, grants aside.
func Load(ctx context.Context, h *guest.Host, module []byte, opt guest.LoadOptions) (*Plugin, error) {
	m, err := h.Load(ctx, module, opt)
	if err != nil {
		return nil, err
	}
	manifest := m.Manifest()
	var specs []sentinels.TypeSpec
	for _, s := range manifest.Steps {
		specs = append(specs, sentinels.TypeSpec{
			Type: sentinels.StepType(s.Type), Summary: s.Summary, Fields: s.Fields, Infer: s.Infer, Aliases: s.Aliases,
			Plugin: manifest.Name, Digest: m.Digest(),
		})
	}
	types, err := sentinels.NewTypeSet(specs)
	if err != nil {
		m.Release()
		return nil, &abi.Error{Code: abi.BadFields, Message: fmt.Sprintf("load plugin %q: %v", manifest.Name, err),
			Hint: "the manifest's rules are in clause A2 of sdk/ABI.md"}
	}
	return &Plugin{Module: m, types: types, pure: !opt.Reuse}, nil
}

// Close lets go of the module.
func (p *Plugin) Close() { p.Module.Release() }

// fields makes of a step's fields what the host would hand to the guest:
// aliases renamed, nested steps counted, held to the schema. References are not
// resolved, for there is no run whose variables they could name.
func (p *Plugin) fields(step string, raw json.RawMessage) (json.RawMessage, error) {
	spec, ok := p.types.Lookup(sentinels.StepType(step))
	if !ok {
		var names []string
		for _, t := range p.types.Types() {
			names = append(names, string(t))
		}
		return nil, &abi.Error{Code: abi.BadFields, Field: "type", Message: fmt.Sprintf("plugin %q has no step type %q", p.Module.Manifest().Name, step),
			Hint: "it has " + strings.Join(names, ", ")}
	}
	var given map[string]json.RawMessage
	if len(raw) == 0 {
		raw = json.RawMessage(`{}`)
	}
	if err := json.Unmarshal(raw, &given); err != nil || given == nil {
		return nil, abi.New(abi.BadFields, "fields: want an object")
	}
	for alias, name := range spec.Aliases {
		if v, ok := given[alias]; ok {
			delete(given, alias)
			given[name] = v
		}
	}
	for name, v := range given {
		given[name] = counted(spec.Mark(name), v)
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

// closed refuses a field that the type does not have. A definition with one is
// refused as a whole, so no guest ever sees it.
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

// counted lets authors write nested steps as a definition does: the guest gets
// their number, clause A2.3.
func counted(mark string, v json.RawMessage) json.RawMessage {
	var list []json.RawMessage
	if mark != abi.MarkSteps && mark != abi.MarkBranches || !bytes.HasPrefix(bytes.TrimSpace(v), []byte("[")) || json.Unmarshal(v, &list) != nil {
		return v
	}
	if mark == abi.MarkSteps {
		return fmt.Appendf(nil, `{"count":%d}`, len(list))
	}
	counts := make([]int, len(list))
	for i, branch := range list {
		var steps []json.RawMessage
		if json.Unmarshal(branch, &steps) != nil {
			return v // the guest says what is wrong with it
		}
		counts[i] = len(steps)
	}
	text, err := json.Marshal(map[string][]int{"counts": counts})
	if err != nil {
		return v
	}
	return text
}

// asBadFields is the error with which the engine ends a step whose fields do
// not fit their schema.
func asBadFields(err error) error {
	e := &abi.Error{Code: abi.BadFields, Message: err.Error(), Permanent: true}
	var problems sentinels.Problems
	if errors.As(err, &problems) && len(problems) > 0 {
		e.Field, e.Hint = problems[0].Path, problems[0].Hint
	}
	return e
}
