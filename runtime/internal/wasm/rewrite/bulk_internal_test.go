package rewrite

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/binary"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/binary/binarytest"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

// rewriteUntrusted scans and rewrites an untrusted module.
func rewriteUntrusted(t testing.TB, wasm []byte) []byte {
	t.Helper()
	l, err := binary.Scan(wasm, false)
	if err != nil {
		t.Fatal(err)
	}
	return Rewrite(l, sameModule)
}

// bulkInstructions are the instructions that can take long, with operands for
// bulkModuleWith.
var bulkInstructions = map[string]string{
	"memory.fill":               "\x41\x00\x41\x00\x41\xc0\x3e\xfc\x0b\x00", // 8,000 bytes
	"memory.copy":               "\x41\x00\x41\x01\x41\xc0\x3e\xfc\x0a\x00\x00",
	"memory.init":               "\x41\x00\x41\x00\x41\x01\xfc\x08\x00\x00",
	"memory.grow":               "\x41\x00\x40\x00\x1a",
	"table.init":                "\x41\x00\x41\x00\x41\x01\xfc\x0c\x00\x00",
	"table.copy":                "\x41\x00\x41\x00\x41\x01\xfc\x0e\x00\x00",
	"table.grow":                "\xd0\x70\x41\x00\xfc\x0f\x00\x1a",
	"table.fill":                "\x41\x00\xd0\x70\x41\x01\xfc\x11\x00",
	"WASI call":                 "\x10\x01\x1a",
	"WASI call through a table": "\x41\x05\x11\x01\x00\x1a",
}

// bulkModuleWith is a module whose function run calls env.cancel, executes code and
// sets the global "after" to 1. Function 1 is imported from WASI and is the fifth
// element of the table.
func bulkModuleWith(code string) []byte {
	body := "\x00\x10\x00" + code + "\x41\x01\x24\x00\x0b"
	return binarytest.Module(
		"\x01\x02\x60\x00\x00\x60\x00\x01\x7f",
		"\x02\x02\x03env\x06cancel\x00\x00\x16wasi_snapshot_preview1\x0bsched_yield\x00\x01",
		"\x03\x01\x00",
		"\x04\x01\x70\x00\x0a",
		"\x05\x01\x00\x01",
		"\x06\x01\x7f\x01\x41\x00\x0b",
		"\x07\x02\x03run\x00\x02\x05after\x03\x00",
		"\x09\x02\x01\x00\x01\x02\x00\x41\x05\x0b\x01\x01", // passive, active
		"\x0c\x01",
		"\x0a\x01"+string(rune(len(body)))+body,
		"\x0b\x01\x01\x01x", // passive
	)
}

// TestBulkInterrupts: a cancelled call ends before the next bulk instruction.
func TestBulkInterrupts(t *testing.T) {
	for name, code := range bulkInstructions {
		t.Run(name, func(t *testing.T) {
			if reachedAfter(t, rewriteUntrusted(t, bulkModuleWith(code))) {
				t.Error("the guest continued after the instruction")
			}
			// Without this the test could not fail.
			if !reachedAfter(t, rewriteTrusted(t, bulkModuleWith(code))) {
				t.Error("a trusted module was interrupted")
			}
		})
	}
}

// reachedAfter runs a module of bulkModuleWith, cancels the call in env.cancel and
// reports whether the guest executed its last instruction.
func reachedAfter(t *testing.T, wasm []byte) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	rt := wazero.NewRuntimeWithConfig(context.Background(), wazero.NewRuntimeConfigCompiler().WithCloseOnContextDone(true))
	defer rt.Close(context.Background())
	_, err := rt.NewHostModuleBuilder("env").NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, m api.Module, _ []uint64) {
		cancel()
		for !m.IsClosed() { // a goroutine of wazero closes it
			time.Sleep(time.Millisecond)
		}
	}), nil, nil).Export("cancel").Instantiate(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	wasi_snapshot_preview1.MustInstantiate(context.Background(), rt)
	guest, err := rt.Instantiate(context.Background(), wasm)
	if err != nil {
		t.Fatal(err)
	}
	after := guest.ExportedGlobal("after")
	var exit *sys.ExitError
	if _, err := guest.ExportedFunction("run").Call(ctx); !errors.As(err, &exit) {
		t.Fatalf("the cancelled call ended with %v", err)
	}
	return after.Get() == 1
}

// TestBulkUnchanged: instructions that take negligible time stay unchanged.
func TestBulkUnchanged(t *testing.T) {
	for name, code := range map[string]string{
		"data.drop":   "\xfc\x09\x00",
		"elem.drop":   "\xfc\x0d\x00",
		"table.size":  "\xfc\x10\x00\x1a",
		"memory.size": "\x3f\x00\x1a",
		"trunc_sat":   "\x43\x00\x00\x00\x00\xfc\x00\x1a",
	} {
		if got, want := rewriteUntrusted(t, bulkModuleWith(code)), rewriteTrusted(t, bulkModuleWith(code)); !bytes.Equal(got, want) {
			t.Errorf("%s: %s", name, cmp.Diff(want, got))
		}
	}
}

// TestBulkIndirectCalls: calls through a table stay unchanged if no table can hold a
// WASI function. Most guests import WASI and make many such calls.
func TestBulkIndirectCalls(t *testing.T) {
	const call = "\x41\x05\x11\x01\x00\x1a"
	for name, c := range map[string]struct {
		change func(wasm string) string
		same   bool
	}{
		"an element":      {func(wasm string) string { return wasm }, false},
		"a later element": {func(wasm string) string { return strings.Replace(wasm, "\x0b\x01\x01", "\x0b\x01\x02", 1) }, true},
		"an export": {func(wasm string) string {
			return strings.Replace(strings.Replace(wasm, "\x0b\x01\x01", "\x0b\x01\x02", 1), "run\x00\x02", "run\x00\x01", 1)
		}, false},
		"an element of another import": {func(wasm string) string { return strings.Replace(wasm, "\x0b\x01\x01", "\x0b\x01\x00", 1) }, true},
		"no import of WASI": {func(wasm string) string {
			return strings.Replace(wasm, "wasi_snapshot_preview1", "wasi_snapshot_preview0", 1)
		}, true},
	} {
		wasm := []byte(c.change(string(bulkModuleWith(call))))
		if same := bytes.Equal(rewriteUntrusted(t, wasm), rewriteTrusted(t, wasm)); same != c.same {
			t.Errorf("%s: the rewrite keeps the call unchanged: %t, want %t", name, same, c.same)
		}
	}
}

// TestBulkOtherMemory: the compiler rejects other memories than 0 with and without
// the rewrite.
func TestBulkOtherMemory(t *testing.T) {
	for name, code := range map[string]string{
		"fill of memory 1":        "\x41\x00\x41\x00\x41\x00\xfc\x0b\x01",
		"copy from memory 1":      "\x41\x00\x41\x00\x41\x00\xfc\x0a\x00\x01",
		"fill with a long index":  "\x41\x00\x41\x00\x41\x00\xfc\x0b\x80\x00",
		"function ends too early": "\x41\x00\x41\x00\x41",
	} {
		wasm := bulkModuleWith(code)
		l, err := binary.Scan(wasm, false)
		if err != nil {
			continue // rejected before it is compiled
		}
		if compiles(t, wasm) {
			t.Errorf("%s: wazero accepts the original", name)
		}
		if compiles(t, Rewrite(l, sameModule)) {
			t.Errorf("%s: wazero accepts the rewrite", name)
		}
	}
}

// TestBulkInChunks: after the rewrite memory.fill and memory.copy have the same
// effect for every size and overlap, and trap for the same arguments without
// writing.
func TestBulkInChunks(t *testing.T) {
	const pages, mib, calls = 64, 1 << 20, 400 // 4 MiB
	wasm := binarytest.Module(
		"\x01\x01\x60\x03\x7f\x7f\x7f\x00",
		"\x03\x02\x00\x00",
		"\x05\x01\x00\xc0\x00",
		"\x07\x03\x04fill\x00\x00\x04copy\x00\x01\x06memory\x02\x00",
		"\x0a\x02\x0b\x00\x20\x00\x20\x01\x20\x02\xfc\x0b\x00\x0b\x0c\x00\x20\x00\x20\x01\x20\x02\xfc\x0a\x00\x00\x0b",
	)
	ctx := context.Background()
	start := func(wasm []byte) api.Module {
		rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCloseOnContextDone(true))
		t.Cleanup(func() { _ = rt.Close(ctx) })
		m, err := rt.Instantiate(ctx, wasm)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	plain, chunked := start(wasm), start(rewriteUntrusted(t, wasm))
	whole := func(m api.Module) []byte {
		b, ok := m.Memory().Read(0, pages*binary.PageSize)
		if !ok {
			t.Fatal("the memory has another size")
		}
		return b
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	memory := whole(plain)
	for i := range memory {
		memory[i] = byte(rnd.Uint32())
	}
	copy(whole(chunked), whole(plain))
	sizes := []uint32{0, 1, 4095, 4096, 4097, 9000, mib - 1, mib, mib + 1, 2*mib - 1, 2 * mib, 2*mib + 1, 3*mib + 5, 4 * mib, 4*mib + 1, 1<<32 - 1}
	offsets := []uint32{0, 1, 4096, 4097, mib - 1, mib, mib + 7, 2 * mib, 2*mib + 1, 4*mib - 1, 4 * mib, 4*mib + 1, 1<<32 - 1}
	pick := func(list []uint32) uint64 { return uint64(list[rnd.IntN(len(list))]) }
	traps := 0
	for i := range calls {
		name, to, from, size := "copy", pick(offsets), pick(offsets), pick(sizes)
		if i%3 == 0 {
			name, from = "fill", uint64(rnd.Uint32()) // the value, of which the low byte counts
		}
		_, want := plain.ExportedFunction(name).Call(ctx, to, from, size)
		_, got := chunked.ExportedFunction(name).Call(ctx, to, from, size)
		if want != nil {
			traps++
		}
		if (want == nil) != (got == nil) || !bytes.Equal(whole(plain), whole(chunked)) {
			t.Fatalf("%s(%d, %d, %d): %v, want %v, and the same memory", name, to, from, size, got, want)
		}
	}
	if traps < calls/10 || traps > calls*9/10 {
		t.Errorf("%d of %d calls trapped: want between a tenth and nine tenths", traps, calls)
	}
}

// TestBulkModule: the embedded module is compiled from bulk.wat.
func TestBulkModule(t *testing.T) {
	tool, err := exec.LookPath("wat2wasm")
	if err != nil {
		t.Skip("bulk.wasm is not compared with bulk.wat: install wat2wasm with apt-get install wabt")
	}
	out := filepath.Join(t.TempDir(), "bulk.wasm")
	if text, err := exec.Command(tool, "bulk.wat", "-o", out).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if made, err := os.ReadFile(out); err != nil || !bytes.Equal(made, bulkModule) {
		t.Errorf("bulk.wasm is not what bulk.wat gives (%v): run make hostile", err)
	}
}
