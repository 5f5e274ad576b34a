package wasm

import (
	"context"

	extism "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero/api"
)

// enter calls an export and returns its status. The first call of an instance
// goes through the SDK, which also runs the guest's initialisation. The SDK
// makes six more calls into a kernel module of its own around each call, with a
// stack of 10 KiB for each, whose results this package does not use. Later calls
// therefore go to the guest's function directly. A guest whose module was not
// found, because it set no output, stays with the SDK.
func (inst *instance) enter(ctx context.Context, export string) (status uint32, err error) {
	if !inst.initialized || inst.main == nil {
		status, _, err = inst.plugin.CallWithContext(ctx, export, nil)
		inst.initialized = err == nil
		return status, err
	}
	f := inst.exports[export]
	if f == nil { // the scan has checked that the module exports it
		f = inst.main.ExportedFunction(export)
		inst.exports[export] = f
	}
	// The SDK's host functions look up their plugin by this key.
	results, err := f.Call(context.WithValue(ctx, extism.PluginCtxKey("plugin"), inst.plugin))
	if err != nil || len(results) == 0 {
		return 0, err
	}
	return api.DecodeU32(results[0]), nil
}
