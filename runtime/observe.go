package runtime

import (
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/runtime/run"
)

// An Observer receives what happens in runs. Nil functions are not called.
type Observer struct {
	// Progress is called for every [Progress], in order for each run, and for
	// the end of a step or run only when it is durable. It must not block:
	// what it delays is late for every observer.
	Progress func(Progress)
	// Definition is called for every new revision of a definition, in the order
	// of the commits, when it is durable. It must neither block nor wait for
	// anything the runtime writes: those receipts come on the same goroutine.
	Definition func(DefinitionChange)
	// Health is called when the runtime becomes read-only or ill and when it is
	// well again. It must neither block nor call the runtime but for
	// [Runtime.Health].
	Health func(Health)
	// Trigger is called for everything that a trigger fired, once what became of
	// it is durable, in order for each sentinel. It must not block either.
	Trigger func(TriggerFired)
	// Plugin is called when a plugin becomes live, begins to wait or is refused,
	// also when only a newer version of one that serves does. It must neither
	// block nor change plugins.
	Plugin func(plugin.Info)
}

// What happens in runs, see package run.
type (
	Progress     = run.Progress
	ProgressKind = run.ProgressKind
	Items        = run.Items
)

// The kinds of progress, see package run.
const (
	OnRunStart       = run.OnRunStart
	OnIterationStart = run.OnIterationStart
	OnStepStart      = run.OnStepStart
	OnCallStart      = run.OnCallStart
	OnCallEnd        = run.OnCallEnd
	OnRetry          = run.OnRetry
	OnStepEnd        = run.OnStepEnd
	OnIterationEnd   = run.OnIterationEnd
	OnStatus         = run.OnStatus
	OnEdit           = run.OnEdit
	OnItems          = run.OnItems
	OnRunEnd         = run.OnRunEnd
	OnLog            = run.OnLog
	OnText           = run.OnText
	OnOutput         = run.OnOutput
)
