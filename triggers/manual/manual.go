// Package manual is the trigger kind that never fires: a sentinel that runs only
// when somebody starts it.
package manual

import (
	"context"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// Options configure the kind. There are none yet; the zero value works.
type Options struct{}

// Kind is the trigger kind "manual". It is stateless.
type Kind struct{}

// New makes the trigger kind.
func New(Options) Kind { return Kind{} }

// Name is "manual".
func (Kind) Name() string { return "manual" }

// Check reports options that are not those of every kind. These are accepted,
// though nothing ever comes that they could act on, so that an author can change
// the kind and nothing else.
func (Kind) Check(t sentinels.Trigger) error { return triggers.ReadOptions(t, &struct{}{}) }

// Arm readies a trigger.
func (k Kind) Arm(t sentinels.Trigger, _ triggers.Env) (triggers.Armed, error) {
	return armed{}, k.Check(t)
}

type armed struct{}

// Run waits until ctx ends.
func (armed) Run(ctx context.Context, _ triggers.Func) error {
	<-ctx.Done()
	return nil
}

var _ triggers.Kind = Kind{}
