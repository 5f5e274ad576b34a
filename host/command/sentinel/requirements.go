package sentinel

import (
	"slices"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// requirements are what sentinels need besides the built-in step types and the commands,
// which every host has.
type requirements struct {
	sentinels []requiredSentinel    // a sentinel follows those that it starts
	missing   map[sentinels.ID]bool // started, and not stored here
	recipes   map[string]bool       // names, also of recipes that every host has
	types     map[sentinels.StepType]bool
	seen      map[sentinels.ID]bool
}

type requiredSentinel struct {
	stored runtime.Stored
	def    *sentinels.Definition
}

func newRequirements() *requirements {
	return &requirements{missing: map[sentinels.ID]bool{}, recipes: map[string]bool{}, types: map[sentinels.StepType]bool{}, seen: map[sentinels.ID]bool{}}
}

// add adds a sentinel, those that it starts, and what they need. Sentinels may start
// each other in a cycle.
func (r *requirements) add(rt *runtime.Runtime, id sentinels.ID) error {
	if r.seen[id] {
		return nil
	}
	r.seen[id] = true
	s, err := rt.Definition(id)
	if abi.CodeOf(err) == abi.NotFound {
		r.missing[id] = true // it may exist in the other project
		return nil
	}
	if err != nil {
		return err
	}
	def, err := rt.Decoded(s)
	if err != nil {
		return err
	}
	children, err := r.read(s)
	if err != nil {
		return err
	}
	for _, child := range children {
		if err := r.add(rt, child); err != nil {
			return err
		}
	}
	r.sentinels = append(r.sentinels, requiredSentinel{s, def})
	return nil
}

// read adds the recipes and step types of one definition, and returns the sentinels that
// it starts. Only a step type knows which of its fields hold steps, and that type may be
// unknown here, so every object with a type counts: there may be one too many, but never
// one too few.
func (r *requirements) read(s runtime.Stored) (children []sentinels.ID, err error) {
	err = sentinels.EachObject(s.Definition, func(object map[string]any, refers sentinels.ID) {
		if refers != "" {
			children = append(children, refers)
		}
		if name, ok := object["recipe"].(string); ok {
			r.recipes[name] = true
		}
		if name, ok := object["type"].(string); ok {
			r.types[sentinels.StepType(name)] = true
		}
	})
	return children, err
}

// plugins returns the plugins that provide the step types, without those that are part
// of the program.
func (r *requirements) plugins(rt *runtime.Runtime) []plugin.Info {
	return slices.DeleteFunc(rt.Plugins(), func(p plugin.Info) bool {
		return p.Trusted || p.State != plugin.Live || !slices.ContainsFunc(p.Types, func(t sentinels.StepType) bool { return r.types[t] })
	})
}
