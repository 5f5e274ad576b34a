package wasm

import (
	"context"
	"fmt"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A WASI function of the engine cannot be interrupted. The work of some grows with an
// argument: poll_oneoff of as many subscriptions as 1 GiB holds took 2 s, a path of
// that length likewise. So a call with more than a guest can mean ends the guest
// before the engine sees it, ABI clause A8.3. This file is part of the seam.

// What one WASI call may name.
const (
	maxSubscriptions = 1_000
	maxBuffers       = 1_024 // as of a system's readv
	maxPath          = 4 << 10
)

// wasiLimits are the arguments that are bounded, by function and by the name that the
// engine gives them.
var wasiLimits = map[string]map[string]uint32{
	"poll_oneoff":             {"nsubscriptions": maxSubscriptions},
	"fd_read":                 {"iovs_len": maxBuffers},
	"fd_pread":                {"iovs_len": maxBuffers},
	"fd_write":                {"iovs_len": maxBuffers},
	"fd_pwrite":               {"iovs_len": maxBuffers},
	"sock_recv":               {"ri_data_len": maxBuffers},
	"sock_send":               {"si_data_len": maxBuffers},
	"path_create_directory":   {"path_len": maxPath},
	"path_filestat_get":       {"path_len": maxPath},
	"path_filestat_set_times": {"path_len": maxPath},
	"path_link":               {"old_path_len": maxPath, "new_path_len": maxPath},
	"path_open":               {"path_len": maxPath},
	"path_readlink":           {"path_len": maxPath},
	"path_remove_directory":   {"path_len": maxPath},
	"path_rename":             {"old_path_len": maxPath, "new_path_len": maxPath},
	"path_symlink":            {"old_path_len": maxPath, "new_path_len": maxPath},
	"path_unlink_file":        {"path_len": maxPath},
}

// wasiGuards puts a guard before each WASI function with bounded arguments.
type wasiGuards struct{}

func (wasiGuards) NewFunctionListener(f api.FunctionDefinition) experimental.FunctionListener {
	limits := wasiLimits[f.Name()]
	if f.ModuleName() != wasiModule || f.GoFunction() == nil || limits == nil {
		return nil
	}
	guard := &wasiGuard{function: f.Name()}
	for i, name := range f.ParamNames() {
		if most, ok := limits[name]; ok {
			guard.bounds = append(guard.bounds, wasiBound{i, name, most})
		}
	}
	return guard
}

// wasiGuard is the guard of one function.
type wasiGuard struct {
	function string
	bounds   []wasiBound
}

type wasiBound struct {
	param int
	name  string
	most  uint32
}

// Before ends the guest if an argument is out of bounds.
func (g *wasiGuard) Before(ctx context.Context, _ api.Module, _ api.FunctionDefinition, params []uint64, _ experimental.StackIterator) {
	for _, b := range g.bounds {
		if n := api.DecodeU32(params[b.param]); n > b.most {
			err := abi.New(abi.Limit, fmt.Sprintf("call %s: %s is %d, the limit is %d", g.function, b.name, n, b.most))
			if c, ok := ctx.Value(callKey{}).(*call); ok {
				c.unwind(err)
			}
			panic(err) // in a start section, which is no call
		}
	}
}

// After does nothing.
func (*wasiGuard) After(context.Context, api.Module, api.FunctionDefinition, []uint64) {}

// Abort does nothing.
func (*wasiGuard) Abort(context.Context, api.Module, api.FunctionDefinition, error) {}

var _ experimental.FunctionListenerFactory = wasiGuards{}
