// Package manual implements the trigger kind that never fires: its sentinel runs
// only when a user or another sentinel starts it.
package manual

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// Options configure the kind. There are no options; the zero value works.
type Options struct{}

// Kind is the trigger kind "manual". It is stateless.
type Kind struct{}

// New returns the trigger kind.
func New(Options) Kind { return Kind{} }

// Describe describes the kind "manual".
func (Kind) Describe() triggers.Description {
	return triggers.Description{Name: "manual", Warnings: warnings, Fires: "never", Event: "name manual, source user; data: what --event or event gives. Without it null"}
}

// warnings reports the common options: they are for firings, and there are none.
func warnings(t sentinels.Trigger) (list []string) {
	var options map[string]json.RawMessage
	if json.Unmarshal(t.Options, &options) != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(options)) {
		list = append(list, name+" has no effect: a manual trigger never fires")
	}
	return list
}

// Check reports options other than the common ones. The common options have no
// effect here, but are accepted, so that an author can change only the type of a
// trigger.
func (Kind) Check(t sentinels.Trigger) error { return triggers.ReadOptions(t, &struct{}{}) }

// Arm returns a trigger that never fires.
func (k Kind) Arm(t sentinels.Trigger, _ triggers.Env) (triggers.Armed, error) {
	return armed{}, k.Check(t)
}

type armed struct{}

// Run waits until ctx ends.
func (armed) Run(ctx context.Context, _ triggers.FireFunc) error {
	<-ctx.Done()
	return nil
}

var _ triggers.Kind = Kind{}
