package wasm

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// TestWASILimitsNameArguments: the bounded arguments exist in wazero, and no other
// WASI function has an argument that looks like a count or the length of a path.
func TestWASILimitsNameArguments(t *testing.T) {
	rt := wazero.NewRuntimeWithConfig(context.Background(), wazero.NewRuntimeConfigInterpreter())
	defer rt.Close(context.Background())
	module, err := wasi_snapshot_preview1.NewBuilder(rt).Compile(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	functions := module.ExportedFunctions()
	for name, limits := range wasiLimits {
		f := functions[name]
		if f == nil {
			t.Errorf("wazero has no %s", name)
			continue
		}
		for param := range limits {
			if !slices.Contains(f.ParamNames(), param) {
				t.Errorf("%s has no argument %q: %q", name, param, f.ParamNames())
			}
		}
	}
	// Bounded by other means: the random stream can be interrupted, and a guest has no
	// folder for the others to work on.
	bounded := map[string]bool{"random_get": true, "fd_readdir": true, "fd_prestat_dir_name": true, "path_readlink": true}
	for name, f := range functions {
		for _, param := range f.ParamNames() {
			counts := strings.HasSuffix(param, "_len") || strings.HasSuffix(param, "_count") || strings.HasPrefix(param, "nsub")
			if _, ok := wasiLimits[name][param]; counts && !ok && !bounded[name] && !strings.HasPrefix(param, "result.") {
				t.Errorf("%s has the argument %q, which no limit bounds", name, param)
			}
		}
	}
}
