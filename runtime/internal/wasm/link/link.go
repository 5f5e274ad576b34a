package link

import (
	"fmt"
	"slices"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/binary"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/manifest"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// KernelModule is the import module of the Extism kernel. A plugin may name it,
// abi.Namespace and [binary.WASIModule].
const KernelModule = "extism:host/env"

// Signatures of host functions and exports.
const (
	hostSignature   = "(i64) -> i64"
	ExportSignature = "() -> i32"
	initSignature   = "() -> ()"
)

// kernelSignatures are the functions of the Extism kernel that a guest may import.
// http_request is not among them: its list of hosts does not hold for redirects, and
// sentinel_http replaces it. Variables and configuration are offered for the PDKs
// that always import them, and are empty.
var kernelSignatures = map[string]string{
	"alloc": hostSignature, "free": "(i64) -> ()", "length": hostSignature, "length_unsafe": hostSignature,
	"load_u8": "(i64) -> i32", "load_u64": hostSignature, "store_u8": "(i64, i32) -> ()", "store_u64": "(i64, i64) -> ()",
	"input_length": "() -> i64", "input_offset": "() -> i64", "input_load_u8": "(i64) -> i32", "input_load_u64": hostSignature,
	"input_set": "(i64, i64) -> ()", "output_set": "(i64, i64) -> ()", "output_length": "() -> i64", "output_offset": "() -> i64",
	"error_set": "(i64) -> ()", "error_get": "() -> i64", "reset": initSignature, "memory_bytes": "() -> i64",
	"config_get": hostSignature, "var_get": hostSignature, "var_set": "(i64, i64) -> ()",
	"http_status_code": "() -> i32", "http_headers": "() -> i64", "get_log_level": "() -> i32",
	"log_trace": "(i64) -> ()", "log_debug": "(i64) -> ()", "log_info": "(i64) -> ()", "log_warn": "(i64) -> ()", "log_error": "(i64) -> ()",
}

// Imports checks the name and the type of every import, and returns the sorted
// names of the imported host functions.
func Imports(m *binary.Module, wasi map[string]string) ([]string, error) {
	known := abi.Funcs()
	var functions []string
	for _, im := range m.Imports {
		found := m.ImportType(im)
		want, hint := "", ""
		switch im.Module {
		case abi.Namespace:
			if slices.Contains(known, im.Name) {
				want = hostSignature
				if !slices.Contains(functions, im.Name) {
					functions = append(functions, im.Name)
				}
			}
			hint = "the plugin may be built for a newer host"
		case KernelModule:
			want = kernelSignatures[im.Name]
			if im.Name == "http_request" {
				hint = "call sentinel_http, which asks for a grant"
			}
		case binary.WASIModule:
			want = wasi[im.Name]
		default:
			hint = "a plugin imports from " + abi.Namespace + ", " + KernelModule + " and " + binary.WASIModule + " only"
		}
		switch {
		case want == "":
			return nil, &abi.Error{Code: abi.BadFields, Message: fmt.Sprintf("link %q: module %q offers no such import", im.Name, im.Module), Hint: hint}
		case want != found:
			return nil, abi.New(abi.BadFields, fmt.Sprintf("link %q: import of type %s, want %s", im.Name, found, want))
		}
	}
	slices.Sort(functions)
	return functions, nil
}

// Exports checks the exports of ABI clause A1, and reports whether the module has
// validate, which is optional.
func Exports(m *binary.Module) (validates bool, err error) {
	// The SDK calls the initialisers, and skips one of another type without an
	// error. The guest would then run uninitialised.
	wanted := map[string]string{
		abi.ExportDescribe: ExportSignature, abi.ExportRun: ExportSignature, abi.ExportValidate: ExportSignature,
		"_initialize": initSignature, "__wasm_call_ctors": initSignature,
	}
	found := map[string]bool{}
	for _, ex := range m.Exports {
		want, ok := wanted[ex.Name]
		if !ok {
			continue
		}
		if typ := m.ExportType(ex); typ != want {
			return false, abi.New(abi.BadFields, fmt.Sprintf("link %q: export of type %s, want %s", ex.Name, typ, want))
		}
		found[ex.Name] = true
	}
	for _, name := range []string{abi.ExportDescribe, abi.ExportRun} {
		if !found[name] {
			return false, abi.New(abi.BadFields, fmt.Sprintf("link %q: no such export, want a function %s", name, ExportSignature))
		}
	}
	return found[abi.ExportValidate], nil
}

// Permissions checks that the manifest asks for the permission of each imported
// function that needs one.
func Permissions(functions []string, m manifest.Manifest) error {
	for _, name := range functions {
		use, guarded := abi.UseOf(name)
		if !guarded {
			continue
		}
		asked := slices.ContainsFunc(m.Permissions, func(a manifest.Permission) bool { return a.Use == string(use) })
		if !asked {
			return &abi.Error{Code: abi.Denied, Message: fmt.Sprintf("link %q: plugin %q imports it without asking for %q", name, m.Name, use),
				Hint: fmt.Sprintf("add {\"use\": %q, \"reason\": \"...\"} to the manifest's permissions", use)}
		}
	}
	return nil
}
