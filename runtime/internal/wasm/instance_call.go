package wasm

import (
	"context"
	"reflect"
	"unsafe"

	extism "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero/api"
)

// enter calls an export. The first call of an instance goes the engine's way,
// which also runs the guest's initialisation; what that does around every call,
// six calls into its own kernel with a stack of 10 KiB each, is of no use here,
// so later ones go to the function itself.
func (inst *instance) enter(ctx context.Context, export string) (status uint32, err error) {
	if inst.main == nil {
		status, _, err = inst.plugin.CallWithContext(ctx, export, nil)
		if err == nil {
			inst.main, inst.exports = mainModule(inst.plugin), map[string]api.Function{}
		}
		return status, err
	}
	f := inst.exports[export]
	if f == nil { // the scan has seen to it that the module has it
		f = inst.main.ExportedFunction(export)
		inst.exports[export] = f
	}
	// The engine finds the plugin of its own imports by this key.
	results, err := f.Call(context.WithValue(ctx, extism.PluginCtxKey("plugin"), inst.plugin))
	if err != nil || len(results) == 0 {
		return 0, err
	}
	return api.DecodeU32(results[0]), nil
}

// mainModule returns the guest itself, which the engine keeps in a field that
// is not exported, or nil if a later version has none by that name and type;
// then every call goes the engine's way.
func mainModule(p *extism.Plugin) api.Module {
	field := reflect.ValueOf(p).Elem().FieldByName("mainModule")
	if !field.IsValid() || field.Type() != reflect.TypeFor[api.Module]() {
		return nil
	}
	return *(*api.Module)(unsafe.Pointer(field.UnsafeAddr()))
}
