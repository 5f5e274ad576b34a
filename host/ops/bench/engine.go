package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/plugins"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// outside is a world in which every command succeeds at once: what is measured
// is the engine.
type outside struct{}

// act stands for a command with an effect, which waits for the disk before it
// starts, look for one that only reads.
const (
	act  = "bench/act"
	look = "bench/look"
)

func (outside) Lookup(name string) (runtime.CommandInfo, bool) {
	return runtime.CommandInfo{Name: name, ReadOnly: name == look}, name == act || name == look
}

func (outside) Tools([]string) []runtime.CommandInfo { return nil }

func (outside) Call(context.Context, runtime.CommandCall) (json.RawMessage, error) {
	return json.RawMessage(`{"success":true,"value":1}`), nil
}

// engine opens a runtime with the built-in step types. With an empty dir it has
// its state in memory.
func (b *bench) engine(dir string, more ...plugin.Source) (*runtime.Runtime, error) {
	return runtime.Open(b.ctx, runtime.Options{
		Dir: dir, CacheDir: b.cache, Commands: outside{},
		Plugins: append([]plugin.Source{{Name: "builtin", Wasm: plugins.Builtin, Manifest: plugins.Manifest, Trusted: true}}, more...),
	})
}

// calls is a definition of n steps that call the same command, each with a
// reference to resolve and an output to keep.
func calls(rt *runtime.Runtime, n int, command string) (*sentinels.Definition, error) {
	steps := make([]string, n)
	for i := range steps {
		steps[i] = fmt.Sprintf(`{"type":"command","command":%q,"params":{"value":"$iteration","text":"step %d"},"outputTo":"v%d"}`, command, i, i%5)
	}
	return decode(rt, `{"name":"bench","steps":[`+strings.Join(steps, ",")+`],"loop":{"type":"once"}}`)
}

func decode(rt *runtime.Runtime, text string) (*sentinels.Definition, error) {
	def, problems := rt.Decode([]byte(text), "bench.json")
	return def, problems.Err()
}

// carryOut runs a definition to its end, which is durable then.
func (b *bench) carryOut(rt *runtime.Runtime, def *sentinels.Definition) error {
	id, err := rt.Start(b.ctx, def, runtime.StartOptions{Workspace: b.dir})
	if err != nil {
		return err
	}
	res, err := rt.Wait(b.ctx, id)
	if err != nil {
		return err
	}
	if res.Status != sentinels.StatusCompleted {
		return fmt.Errorf("a run ended %s: %w", res.Status, res.Error)
	}
	return nil
}
