package wasm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	extism "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/abitest"
)

// oracle hosts guests with the Extism SDK alone: no rewrite, and the call memory is
// its kernel. A guest that runs there is a standard one. hostAdditions lists what
// this package does differently.
type oracle struct{}

type oracleGuest struct{ plugin *extism.CompiledPlugin }

// oracleCall is the call in the ctx of a host function.
type oracleCall struct {
	answer abitest.CallFunc
	err    error // why the host ended the guest
}

type oracleKey struct{}

func (oracle) Load(ctx context.Context, module []byte) (abitest.Guest, error) {
	var functions []extism.HostFunction
	handle := []extism.ValueType{extism.ValueTypePTR}
	for _, name := range abi.Funcs() {
		f := extism.NewHostFunctionWithStack(name, func(ctx context.Context, p *extism.CurrentPlugin, stack []uint64) {
			stack[0] = ctx.Value(oracleKey{}).(*oracleCall).host(ctx, p, name, stack[0])
		}, handle, handle)
		f.SetNamespace(abi.Namespace)
		functions = append(functions, f)
	}
	plugin, err := extism.NewCompiledPlugin(ctx, extism.Manifest{Wasm: []extism.Wasm{extism.WasmData{Data: module}}},
		extism.PluginConfig{EnableWasi: true, RuntimeConfig: wazero.NewRuntimeConfig().WithCloseOnContextDone(true)}, functions)
	if err != nil {
		return nil, abi.New(abi.BadFields, err.Error())
	}
	g := &oracleGuest{plugin}
	if _, err := g.Describe(ctx); err != nil {
		_ = g.Close()
		return nil, err
	}
	return g, nil
}

func (c *oracleCall) host(ctx context.Context, p *extism.CurrentPlugin, name string, handle uint64) uint64 {
	request, err := p.ReadBytes(handle)
	body := []byte(`{"error":{"code":"denied","message":"no host calls are answered here"}}`)
	switch {
	case err != nil || len(request) == 0:
		body = []byte(`{"error":{"code":"bad_fields","message":"no request"}}`)
	case len(request) > 256<<10:
		body = []byte(`{"error":{"code":"limit","message":"the request is too large"}}`)
	case c.answer != nil:
		reply, err := c.answer(ctx, name, bytes.Clone(request))
		if err != nil {
			c.err = err
			panic(err)
		}
		body = reply.Body
	}
	out, err := p.WriteBytes(body)
	if err != nil {
		panic(err)
	}
	return out
}

// call calls an export in a new instance, after describe.
func (g *oracleGuest) call(ctx context.Context, export string, inv abitest.Invocation) (output []byte, stderr string, err error) {
	seed := [32]byte{byte(inv.Seed), 1}
	var errs bytes.Buffer
	p, err := g.plugin.Instance(ctx, extism.PluginInstanceConfig{ModuleConfig: wazero.NewModuleConfig().WithRandSource(rand.NewChaCha8(seed)).WithStderr(&errs)})
	if err != nil {
		return nil, "", abi.New(abi.Trap, err.Error())
	}
	defer func() { err = errors.Join(err, p.Close(context.Background())) }()
	exports := []string{abi.ExportDescribe, export}
	for _, name := range slices.Compact(exports) {
		if !p.FunctionExists(name) {
			return []byte(`{"problems":[]}`), "", nil // validate is optional
		}
		c, input := &oracleCall{}, []byte(nil)
		if name == export {
			c.answer, input = inv.Call, inv.Input
		}
		var status uint32
		status, output, err = p.CallWithContext(context.WithValue(ctx, oracleKey{}, c), name, input)
		switch {
		case c.err != nil:
			return nil, errs.String(), c.err
		case err != nil && status == 1 && p.GetError() != "":
			return nil, errs.String(), oracleError(err.Error())
		case err != nil:
			return nil, errs.String(), abi.New(abi.Trap, "the plugin trapped")
		case status != 0:
			return nil, errs.String(), abi.New(abi.Plugin, fmt.Sprintf("%s returned %d", name, status))
		}
	}
	return output, errs.String(), nil
}

// oracleError decodes a guest's error by clause A5.1.
func oracleError(text string) error {
	var e abi.Error
	if json.Unmarshal([]byte(text), &e) != nil || e.Message == "" {
		return abi.New(abi.Plugin, text)
	}
	if !abi.IsCode(string(e.Code)) {
		e.Code = abi.Plugin
	}
	return &e
}

func (g *oracleGuest) Describe(ctx context.Context) ([]byte, error) {
	text, _, err := g.call(ctx, abi.ExportDescribe, abitest.Invocation{})
	return text, err
}

func (g *oracleGuest) Run(ctx context.Context, inv abitest.Invocation) (abitest.Result, error) {
	output, stderr, err := g.call(ctx, abi.ExportRun, inv)
	if err != nil {
		return abitest.Result{Stderr: stderr}, err
	}
	var shape map[string]json.RawMessage
	if err := json.Unmarshal(output, &shape); err != nil || shape["output"] == nil {
		return abitest.Result{}, abi.New(abi.Output, "the output is not an object with the key output")
	}
	return abitest.Result{Output: shape["output"], Stderr: stderr}, nil
}

func (g *oracleGuest) Validate(ctx context.Context, input []byte) ([]byte, error) {
	text, _, err := g.call(ctx, abi.ExportValidate, abitest.Invocation{Input: input})
	return text, err
}

func (g *oracleGuest) Close() error { return g.plugin.Close(context.Background()) }

// TestGuestsAreStandard: the guests of the SDKs pass the conformance kit on Extism.
func TestGuestsAreStandard(t *testing.T) {
	if raceEnabled {
		t.Skip("no code of this package hosts the guests: nothing for the race detector")
	}
	committed, err := filepath.Glob("../../../sdk/*/conformance/conformance.wasm")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range committed {
		module, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lang := filepath.Base(filepath.Dir(filepath.Dir(file)))
		t.Run(lang, func(t *testing.T) {
			if testing.Short() && lang != "c" {
				t.Skip("a thousand instances of a guest: C is enough with -short")
			}
			abitest.TestGuest(t, oracle{}, module)
		})
	}
	t.Run("replay", func(t *testing.T) {
		// A Go guest that uses randomness makes the same requests with equal seeds.
		if got, want := countCalls(t, oracle{}, replayGuest(t)), 12; got != want {
			t.Errorf("%d calls, want %d", got, want)
		}
	})
}

// countCalls runs a guest and returns the number of its host calls.
func countCalls(t *testing.T, host abitest.Host, module []byte) int {
	t.Helper()
	g, err := host.Load(t.Context(), module)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	n := 0
	if _, err := g.Run(t.Context(), abitest.Invocation{Call: func(context.Context, string, []byte) (abitest.Reply, error) {
		n++
		return abitest.Reply{Body: []byte(`{"ok":1}`)}, nil
	}}); err != nil {
		t.Fatal(err)
	}
	return n
}

// hostAdditions are the checks of the conformance kit that Extism alone fails, with
// the reason. Each is a task of this package.
var hostAdditions = map[string]string{
	"A7.1 the clock begins with the attempt, advances at each reading and is set to the end of a call": "its clock stands still at a day of 2022, also over host calls",
	"A7.1 a sleep advances the clocks and takes no real time":                                          "its sleep takes no time and does not advance the clocks",
	"A8 an output of 1 MiB is accepted, one byte more is not":                                          "it accepts any output",
	"A8 a smaller limit of the output is enforced":                                                     "it accepts any output",
	"A8 an answer of 256 KiB reaches the guest, a larger one is an error":                              "it accepts any reply",
	"A8 memory grows to its limit and no further":                                                      "its limit holds for a module, not for a call",
	"A8 standard error is counted, and ends the step above the limit":                                  "it has no limit on output streams",
}

// TestWhatTheHostAdds: Extism alone fails exactly the checks of hostAdditions.
func TestWhatTheHostAdds(t *testing.T) {
	if raceEnabled {
		t.Skip("no code of this package hosts the guests: nothing for the race detector")
	}
	seen := map[string]bool{}
	for _, o := range abitest.CheckHost(t.Context(), oracle{}) {
		name := o.Clause + " " + o.Name
		why, ok := hostAdditions[name]
		seen[name] = true
		switch {
		case len(o.Faults) > 0 && !ok:
			t.Errorf("%s: Extism fails this check, which is not listed: %s", name, o.Faults)
		case len(o.Faults) == 0 && ok:
			t.Errorf("%s: Extism passes this check, which is listed because %s", name, why)
		}
	}
	for name := range hostAdditions {
		if !seen[name] {
			t.Errorf("%s is listed, but not a check of the kit", name)
		}
	}
}
