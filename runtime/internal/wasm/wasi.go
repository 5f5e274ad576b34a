package wasm

import (
	"context"
	"fmt"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A WASI function of wazero cannot be interrupted, and the work of some grows
// with an argument: poll_oneoff with as many subscriptions as fit into 1 GiB
// took 2 s, a path of that length as long. A call with more than an honest guest
// needs therefore ends the guest before wazero executes it, ABI clause A8.3.

// Bounds on the arguments of one WASI call.
const (
	maxSubscriptions = 1_000
	maxBuffers       = 1_024   // as readv of an operating system
	maxPath          = 4 << 10 // bytes
)

// wasiLimits lists the bounded arguments by function and by wazero's name of
// the parameter.
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

// newWASIGuard returns the guard of a WASI function, nil if none of its
// arguments is bounded.
func newWASIGuard(f api.FunctionDefinition) experimental.FunctionListener {
	limits := wasiLimits[f.Name()]
	if limits == nil {
		return nil
	}
	guard := &wasiGuard{function: f.Name()}
	for i, name := range f.ParamNames() {
		if limit, ok := limits[name]; ok {
			guard.bounds = append(guard.bounds, wasiBound{i, name, limit})
		}
	}
	return guard
}

// wasiGuard checks the arguments of one WASI function before wazero executes it.
type wasiGuard struct {
	noListener
	function string
	bounds   []wasiBound
}

type wasiBound struct {
	param int
	name  string
	limit uint32
}

// Before ends the guest if an argument is out of bounds.
func (g *wasiGuard) Before(ctx context.Context, _ api.Module, _ api.FunctionDefinition, params []uint64, _ experimental.StackIterator) {
	for _, b := range g.bounds {
		if n := api.DecodeU32(params[b.param]); n > b.limit {
			err := abi.New(abi.Limit, fmt.Sprintf("call %s: %s is %d, the limit is %d", g.function, b.name, n, b.limit))
			if c := callFrom(ctx); c != nil {
				c.unwind(err)
			}
			panic(err) // in a start section, which has no call yet
		}
	}
}
