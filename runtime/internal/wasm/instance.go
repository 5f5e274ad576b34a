package wasm

import (
	"context"
	"fmt"
	"time"

	extism "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/clock"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/memory"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// instance is one guest in memory. It serves one call at a time: the caller of
// acquireInstance has it until it returns it to the pool or closes it.
type instance struct {
	plugin      *extism.Plugin
	main        api.Module              // the guest itself, set by moduleFinder in its first call
	exports     map[string]api.Function // of main, each with a stack that is kept
	initialized bool                    // a first call has succeeded, so the SDK has run the guest's initialisation
	clock       *clock.Clock            // the guest's only source of time and randomness
	memories    *memory.Memories        // linear memory of the guest and of the SDK's kernel
	callMemory  *memory.CallMemory      // input, output and host calls
	current     *call                   // the call in progress
	stdout      outputTail
	stderr      outputTail
	exited      *uint32 // exit code, once the guest has exited or was interrupted
	closing     bool

	seed    uint64 // of its initialisation
	offered bool   // the seed was returned to a caller; guarded by prewarmer.mu

	calls int       // of run or validate
	born  time.Time // when it was created
	start int64     // bytes of linear memory after describe
}

// allocator adapts memories to the interface of wazero.
type allocator struct{ *memory.Memories }

func (a allocator) Allocate(least, most uint64) experimental.LinearMemory {
	return a.Memories.Allocate(least, most)
}

// newInstance creates an instance for a call. It executes the guest's start section
// under the deadline of the call.
func newInstance(c *call, code *compiled, arena *memory.Arena) (inst *instance, err error) {
	inst = &instance{
		memories:   memory.NewMemories(arena, int(c.limits.MemoryBytes)),
		callMemory: memory.NewCallMemory(arena),
		exports:    map[string]api.Function{},
		born:       time.Now(), current: c, seed: c.seed,
	}
	c.inst = inst
	inst.clock = clock.New(
		func() { inst.current.unwind(errSleep(inst.clock.MaxSleep())) },
		func() { inst.current.checkEnded() })
	inst.clock.SetMaxSleep(c.compute)
	inst.stdout.inst, inst.stderr.inst = inst, inst
	// The start time of the attempt is not known to a prewarmed instance.
	inst.clock.Begin(c.seed, "init", time.Time{})
	cfg := wazero.NewModuleConfig().WithRandSource(inst.clock).
		WithWalltime(inst.clock.Walltime, 1000).WithNanotime(inst.clock.Nanotime, 1000).
		WithNanosleep(inst.clock.Nanosleep).WithOsyield(inst.clock.Yield).
		WithStdout(&inst.stdout).WithStderr(&inst.stderr)
	ctx := experimental.WithMemoryAllocator(c.ctx, allocator{inst.memories})
	ctx = experimental.WithCloseNotifier(ctx, experimental.CloseNotifyFunc(func(_ context.Context, code uint32) {
		if !inst.closing {
			inst.exited = &code
		}
	}))
	// A panic here comes from wazero and would end the process.
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("instantiate module: %v", fault)
		}
		if err != nil {
			err = c.failure(err)
			inst.Close()
			inst = nil
		}
	}()
	inst.plugin, err = code.plugin.Instance(ctx, extism.PluginInstanceConfig{ModuleConfig: cfg})
	if err != nil {
		return inst, err
	}
	if err := inst.memories.GrowError(); err != nil {
		return inst, err
	}
	return inst, nil
}

// call calls an export with an input, into which large belong, and returns its output, with the values that it has the handles of. The checks are in the order of
// ABI.md: the end of the call by the host, a trap or exit, the guest's error, the
// status, the output.
func (inst *instance) call(c *call, export string, input []byte, large []LargeValue) (*Outline, error) {
	c.inst, inst.current = inst, c
	inst.callMemory.Begin(int(c.limits.MemoryBytes) + callMemorySpare)
	defer inst.callMemory.Reset()
	input, err := c.giveInput(input, large)
	if err != nil {
		return nil, err
	}
	c.handleBytes += len(input)
	if err := inst.callMemory.SetInput(input); err != nil {
		return nil, err
	}
	// A call that has ended fails even if the guest succeeds: a Trusted guest is not
	// interrupted and may return long after its deadline.
	status, err := inst.enter(context.WithValue(c.ctx, callKey{}, c), export)
	if err != nil || inst.exited != nil || c.ctx.Err() != nil {
		return nil, c.failure(err)
	}
	if text, ok := inst.callMemory.Read(inst.callMemory.Fault); ok {
		return nil, guestError(string(text))
	}
	if status != 0 {
		return nil, abi.New(abi.Plugin, fmt.Sprintf("%s returned %d and set no error", export, status))
	}
	text := c.handlesIn(inst.callMemory.Result())
	if len(text.handles) > 0 && text.size > c.limits.OutputBytes {
		return nil, errOutputSize(text.size, c.limits.OutputBytes)
	}
	return text.outline(), nil
}

// errOutputSize is the error of an output that is too large.
func errOutputSize(size, limit int) error {
	return abi.New(abi.Output, fmt.Sprintf("the plugin's output has %d bytes, at most %d are allowed", size, limit))
}

// SetLimit sets the memory limit of the next call in bytes. It reports false if the
// limit is beyond the address space or below the current size.
func (inst *instance) SetLimit(limit int) bool { return inst.memories.SetLimit(limit) }

// Close frees the instance. No call may be in progress.
func (inst *instance) Close() {
	inst.closing = true
	inst.callMemory.Reset()
	if inst.plugin != nil {
		_ = inst.plugin.CloseWithContext(context.Background())
	}
	inst.memories.Free() // a failed instantiation does not free them
}
