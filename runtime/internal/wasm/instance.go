package wasm

import (
	"context"
	"errors"
	"fmt"
	stdruntime "runtime"
	"strings"
	"time"

	extism "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// instance is one guest in memory. It serves one call at a time: whoever took
// it from checkout has it alone until they give it back.
type instance struct {
	plugin      *extism.Plugin
	main        api.Module              // the guest itself, set by moduleFinder in its first call
	exports     map[string]api.Function // of main, each with a stack that is kept
	initialized bool                    // a first call has succeeded, so the SDK has run the guest's initialisation
	clock       *clock                  // all of time and chance that the guest sees
	memories    *memories               // its linear memory and one of the engine's
	callMemory  callMemory              // input, output and host calls
	current     *call                   // the call at work, for what the guest writes
	stdout      sink
	stderr      sink
	exited      *uint32 // the code, once the guest ended itself or was interrupted
	closing     bool

	seed    uint64 // of its initialisation
	offered bool   // the seed was given to a caller; guarded by ahead.mu

	calls int       // of run, since it was made
	born  time.Time // when it was made
	start int64     // bytes of memory after it was described
	idle  time.Time // when it was put back
}

// allocator adapts memories, which name no type of the
// engine, to its interface.
type allocator struct{ *memories }

func (a allocator) Allocate(least, most uint64) experimental.LinearMemory {
	return a.memories.Allocate(least, most)
}

// newInstance makes an instance for a call; the guest's start section runs in
// it, under the call's deadline.
func newInstance(c *call, code *compiled, arena *arena) (inst *instance, err error) {
	inst = &instance{
		clock:      &clock{maxSleep: c.compute},
		memories:   &memories{arena: arena, limit: int(c.limits.MemoryBytes)},
		callMemory: callMemory{arena: arena},
		exports:    map[string]api.Function{},
		born:       time.Now(), current: c, seed: c.seed,
	}
	c.inst = inst
	inst.clock.check = func() { inst.current.check() }
	inst.clock.overrun = func() { inst.current.unwind(errSleep(inst.clock.maxSleep)) }
	inst.stdout.inst, inst.stderr.inst = inst, inst
	// Not the attempt's time: an instance that was made ahead would not know it.
	inst.clock.begin(c.seed, "init", time.Time{})
	cfg := wazero.NewModuleConfig().WithRandSource(inst.clock).
		WithWalltime(inst.clock.walltime, 1000).WithNanotime(inst.clock.nanotime, 1000).
		WithNanosleep(inst.clock.nanosleep).WithOsyield(func() { inst.clock.advance(tick) }).
		WithStdout(&inst.stdout).WithStderr(&inst.stderr)
	ctx := experimental.WithMemoryAllocator(c.ctx, allocator{inst.memories})
	ctx = experimental.WithCloseNotifier(ctx, experimental.CloseNotifyFunc(func(_ context.Context, code uint32) {
		if !inst.closing {
			inst.exited = &code
		}
	}))
	// A panic here is the engine's own and would end the process.
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("instantiate module: %v", fault)
		}
		if err != nil {
			err = c.failure(err)
			inst.close()
			inst = nil
		}
	}()
	inst.plugin, err = code.plugin.Instance(ctx, extism.PluginInstanceConfig{ModuleConfig: cfg})
	if err != nil {
		return inst, err
	}
	if refused := inst.memories.refused(); refused != nil {
		return inst, refused
	}
	return inst, nil
}

// call calls an export and returns its output. The order of the checks is that of
// ABI.md: why the host ended it, a trap or exit, the guest's own error, the
// status, the output.
func (inst *instance) call(c *call, export string, input []byte) ([]byte, error) {
	c.inst, inst.current = inst, c
	if err := inst.callMemory.begin(input, int(c.limits.MemoryBytes)+callMemorySpare); err != nil {
		return nil, err
	}
	defer inst.callMemory.reset()
	// Success on a call that is over is none: a Trusted guest is not interrupted
	// and may come back long after its time.
	status, err := inst.enter(context.WithValue(c.ctx, callKey{}, c), export)
	if err != nil || inst.exited != nil || c.ctx.Err() != nil {
		return nil, c.failure(err)
	}
	if text, ok := inst.callMemory.read(inst.callMemory.fault); ok {
		return nil, guestError(string(text))
	}
	if status != 0 {
		return nil, abi.New(abi.Plugin, fmt.Sprintf("%s returned %d and set no error", export, status))
	}
	return inst.callMemory.result(), nil
}

// close frees the instance. It must not be at work.
func (inst *instance) close() {
	inst.closing = true
	inst.callMemory.reset()
	if inst.plugin != nil {
		_ = inst.plugin.CloseWithContext(context.Background())
	}
	for _, m := range inst.memories.list {
		m.Free() // again for those an instantiation that failed left behind
	}
}

// failure turns what the engine returned into the error that Run returns.
func (c *call) failure(err error) error {
	if c.err != nil {
		return c.err
	}
	if c.ctx.Err() != nil {
		return c.ended()
	}
	inst := c.inst
	if refused := inst.memories.refused(); refused != nil {
		return refused
	}
	var fault stdruntime.Error
	var exit *sys.ExitError
	switch {
	case errors.As(err, &fault):
		c.log("a host function failed", err)
		return abi.New(abi.Internal, "a host function failed")
	case inst.exited != nil && (err == nil || errors.As(err, &exit)): // a start section that traps closes the instance too
		return abi.New(abi.Trap, inst.withPanic(fmt.Sprintf("the plugin exited with code %d instead of returning", *inst.exited)))
	case err == nil:
		return abi.New(abi.Internal, "the call ended without a reason")
	}
	text := strings.TrimSuffix(firstLine(err.Error()), " (recovered by wazero)")
	if _, trap, ok := strings.Cut(text, "wasm error: "); ok {
		text = trap
	}
	return abi.New(abi.Trap, inst.withPanic("the plugin trapped: "+text))
}

// withPanic adds the line of stderr that says why a guest gave up, as a Go or
// Rust panic writes it before it traps.
func (inst *instance) withPanic(message string) string {
	for line := range strings.Lines(inst.stderr.String()) {
		line = strings.TrimSpace(line)
		if strings.Contains(line, "panic") || strings.HasPrefix(line, "fatal error:") {
			return message + ": " + clip(line, 200)
		}
	}
	return message
}

// sink is what a guest writes to stdout or stderr: the last of it is kept, all
// of it counts against the call's limit.
type sink struct {
	inst *instance
	tail []byte
}

// maxTail is how much of a stream is kept, in bytes.
const maxTail = 4 << 10

func (s *sink) Write(p []byte) (int, error) {
	c := s.inst.current
	c.check()
	if c.written += len(p); c.written > c.limits.LogBytes {
		c.unwind(abi.New(abi.Limit, fmt.Sprintf("the plugin wrote more than %d bytes to stdout and stderr", c.limits.LogBytes)))
	}
	s.tail = append(s.tail, p[max(0, len(p)-maxTail):]...)
	if over := len(s.tail) - maxTail; over > 0 {
		s.tail = append(s.tail[:0], s.tail[over:]...)
	}
	return len(p), nil
}

// String returns what is kept, with bytes that are no UTF-8 replaced.
func (s *sink) String() string { return strings.ToValidUTF8(string(s.tail), "\ufffd") }
