// Package guest hosts one step plugin outside a run, as the engine hosts it
// inside one: with it tools and tests load a module, read what it says of itself
// and carry out single steps against answers of their own.
package guest

import (
	"os"

	"github.com/sentinel-runtime/sentinel/runtime/internal/subprocess"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
)

// The words of this package are those of the engine's own seam, so that what
// works here works in a run.
type (
	// Host loads modules and owns what they share. It is safe for concurrent use.
	Host = wasm.Host
	// Options configure a Host. The zero value works.
	Options = wasm.Options
	// Command is a program that can be started as a child.
	Command = subprocess.Command
	// LoadOptions say how a module may be used.
	LoadOptions = wasm.LoadOptions
	// Module is one loaded plugin version. Whoever loaded it releases it.
	Module = wasm.Module
	// Manifest is what a plugin says of itself, ABI clause A2.
	Manifest = wasm.Manifest
	// StepType is one step type of a Manifest.
	StepType = wasm.StepType
	// Ask is one permission of a Manifest.
	Ask = wasm.Ask
	// Invocation is one attempt of one step.
	Invocation = wasm.Invocation
	// Limits bound what one call may use.
	Limits = wasm.Limits
	// CallFunc answers the host calls of an Invocation.
	CallFunc = wasm.CallFunc
	// Reply is the answer to a host call.
	Reply = wasm.Reply
	// Result is what a successful call gave.
	Result = wasm.Result
	// Problem is one finding of a plugin's validate export.
	Problem = wasm.Problem
	// Info is what the bytes of a module say without running anything.
	Info = wasm.Info
	// Import is one entry of an import section.
	Import = wasm.Import
	// Export is one entry of an export section.
	Export = wasm.Export
)

// ServeChild must be the first thing in the main, or the TestMain, of a program
// that loads modules with this package and does not begin with ServeChild of
// package runtime, which does the same and more: modules that are not Trusted are
// compiled in a child, which is this program again. In a child it does not return.
func ServeChild() {
	subprocess.EnableSelf()
	if wasm.ServeChild() {
		os.Exit(0)
	}
}

// Open makes a host. Without Options.Child its children are this program again,
// if that begins with [ServeChild]; else only Trusted modules can be loaded, and
// those whose compiled code is in Options.CacheDir.
func Open(opt Options) (*Host, error) {
	if opt.Child.Path == "" {
		opt.Child = subprocess.Self()
	}
	return wasm.Open(opt)
}

// Inspect reads the sections of a module. It compiles and runs nothing.
func Inspect(module []byte) (Info, error) { return wasm.Inspect(module) }
