package wasm

import (
	"context"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/binary"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// listeners attaches wazero's function listeners to two kinds of host
// functions: a guard to WASI functions with bounded arguments, and to
// output_set a listener that finds the guest's module. Guest functions get
// none, so compiled code does not depend on this file.
type listeners struct{}

func (listeners) NewFunctionListener(f api.FunctionDefinition) experimental.FunctionListener {
	switch {
	case f.GoFunction() == nil:
		return nil
	case f.ModuleName() == binary.WASIModule:
		return newWASIGuard(f)
	case f.ModuleName() == callMemoryModule && f.Name() == moduleFunction:
		return moduleFinder{}
	}
	return nil
}

// moduleFunction is the host function whose caller is recorded as the guest's
// module. Every guest calls it in describe, because that is how it returns its
// manifest, and few call it more than once a call.
const moduleFunction = "output_set"

// moduleFinder records the module that calls a host function. The SDK keeps
// that module private, and its own way to call an export costs two to three
// times as much as calling the function of the module; see instance.enter.
type moduleFinder struct{ noListener }

// Before records the caller in the instance of the call.
func (moduleFinder) Before(ctx context.Context, guest api.Module, _ api.FunctionDefinition, _ []uint64, _ experimental.StackIterator) {
	if c := callFrom(ctx); c != nil && c.inst.main == nil {
		c.inst.main = guest
	}
}

// noListener has the callbacks that no listener of this package uses.
type noListener struct{}

// After does nothing.
func (noListener) After(context.Context, api.Module, api.FunctionDefinition, []uint64) {}

// Abort does nothing.
func (noListener) Abort(context.Context, api.Module, api.FunctionDefinition, error) {}

var (
	_ experimental.FunctionListenerFactory = listeners{}
	_ experimental.FunctionListener        = (*wasiGuard)(nil)
	_ experimental.FunctionListener        = moduleFinder{}
)
