// Package guest executes step plugins outside of runs, with the same host as the runtime.
// Tools and tests use it to load a module, read its manifest and execute single steps with
// their own answers to host calls.
package guest

import (
	"os"

	"github.com/sentinel-runtime/sentinel/runtime/internal/subprocess"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
)

// The types are those of the runtime's internal host, so that a plugin behaves as in a
// run.
type (
	// Host loads modules and owns their shared resources. It is safe for concurrent use.
	Host = wasm.Host
	// Options configure a Host. The zero value works.
	Options = wasm.Options
	// Command is a program that can be started as a child.
	Command = subprocess.Command
	// LoadOptions are the permissions and limits of a module.
	LoadOptions = wasm.LoadOptions
	// Module is one loaded version of a plugin. The caller that loads it releases it.
	Module = wasm.Module
	// Manifest describes a plugin, ABI clause A2.
	Manifest = wasm.Manifest
	// StepType is one step type of a Manifest.
	StepType = wasm.StepType
	// Permission is one permission of a Manifest.
	Permission = wasm.Permission
	// Invocation is one attempt of one step.
	Invocation = wasm.Invocation
	// Limits are the limits of one call.
	Limits = wasm.Limits
	// CallFunc answers the host calls of an Invocation.
	CallFunc = wasm.CallFunc
	// Reply is the answer to a host call.
	Reply = wasm.Reply
	// Result is the result of a successful call.
	Result = wasm.Result
	// Problem is one problem from a plugin's validate export.
	Problem = wasm.Problem
	// Info describes a module without executing it.
	Info = wasm.Info
	// Import is one entry of an import section.
	Import = wasm.Import
	// Export is one entry of an export section.
	Export = wasm.Export
)

// ServeChild must be the first call in the main, or the TestMain, of a program that loads
// modules with this package, unless that begins with ServeChild of package runtime, which
// includes it. Modules that are not Trusted are compiled in a child process, which is the
// same program. In a child ServeChild does not return.
func ServeChild() {
	subprocess.EnableSelf()
	if wasm.ServeChild() {
		os.Exit(0)
	}
}

// Open creates a host. Without Options.Child, its child processes are this program, if it
// begins with [ServeChild]; else only Trusted modules can be loaded, and modules whose
// compiled code is in Options.CacheDir.
func Open(opt Options) (*Host, error) {
	if opt.Child.Path == "" {
		opt.Child = subprocess.Self()
	}
	return wasm.Open(opt)
}

// Inspect reads the sections of a module. It does not compile or execute it.
func Inspect(module []byte) (Info, error) { return wasm.Inspect(module) }
