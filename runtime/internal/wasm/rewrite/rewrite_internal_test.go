package rewrite

import (
	"bytes"
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/binary"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/binary/binarytest"
	"github.com/tetratelabs/wazero"
)

// These tests are inside of the package because the only effect of the rewrite that
// a caller sees is that a guest can be stopped.

// sameModule keeps the import module of an import.
func sameModule(im binary.Import) string { return im.Module }

// rewriteTrusted scans and rewrites a trusted module.
func rewriteTrusted(t *testing.T, wasm []byte) []byte {
	t.Helper()
	l, err := binary.Scan(wasm, true)
	if err != nil {
		t.Fatal(err)
	}
	return Rewrite(l, sameModule)
}

func TestLoopWrap(t *testing.T) {
	for name, c := range map[string]struct{ in, want []byte }{
		"no result, custom section dropped": {
			binarytest.Module("\x00\x01xy", "\x01\x01\x60\x00\x00", "\x03\x01\x00", "\x0a\x01\x04\x01\x01\x7f\x0b"),
			binarytest.Module("\x01\x01\x60\x00\x00", "\x03\x01\x00", "\x0a\x01\x0a\x01\x01\x7f\x03\x40\x02\x40\x0b\x0b\x0b"),
		},
		"one result": {
			binarytest.Module("\x01\x01\x60\x00\x01\x7e", "\x03\x01\x00", "\x0a\x01\x04\x00\x42\x05\x0b"),
			binarytest.Module("\x01\x01\x60\x00\x01\x7e", "\x03\x01\x00", "\x0a\x01\x0a\x00\x03\x7e\x02\x7e\x42\x05\x0b\x0b\x0b"),
		},
		// (i32) -> (i32, i32) needs a type () -> (i32, i32), which is added.
		"two results": {
			binarytest.Module("\x01\x01\x60\x01\x7f\x02\x7f\x7f", "\x03\x01\x00", "\x0a\x01\x06\x00\x20\x00\x20\x00\x0b"),
			binarytest.Module("\x01\x02\x60\x01\x7f\x02\x7f\x7f\x60\x00\x02\x7f\x7f", "\x03\x01\x00", "\x0a\x01\x0c\x00\x03\x01\x02\x01\x20\x00\x20\x00\x0b\x0b\x0b"),
		},
		"two results, type declared already": {
			binarytest.Module("\x01\x01\x60\x00\x02\x7f\x7f", "\x03\x01\x00", "\x0a\x01\x06\x00\x41\x00\x41\x00\x0b"),
			binarytest.Module("\x01\x01\x60\x00\x02\x7f\x7f", "\x03\x01\x00", "\x0a\x01\x0c\x00\x03\x00\x02\x00\x41\x00\x41\x00\x0b\x0b\x0b"),
		},
		"table gets a maximum": {
			binarytest.Module("\x04\x01\x70\x00\x05"), binarytest.Module("\x04\x01\x70\x01\x05\xa0\x8d\x06"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := rewriteTrusted(t, c.in); !bytes.Equal(got, c.want) {
				t.Error(cmp.Diff(c.want, got))
			}
			compiles(t, c.want)
		})
	}
}

func TestMergeSegments(t *testing.T) {
	memory := "\x05\x01\x00\x01"
	seg := func(at byte, data string) string {
		return "\x00\x41" + string(binary.AppendS64(nil, int64(at))) + "\x0b" + string(rune(len(data))) + data
	}
	for name, c := range map[string]struct{ in, want string }{
		"neighbours, out of order":   {"\x02" + seg(12, "cd") + seg(10, "ab"), "\x01" + seg(10, "abcd")},
		"a gap is filled":            {"\x02" + seg(10, "ab") + seg(14, "cd"), "\x01" + seg(10, "ab\x00\x00cd")},
		"an overlap is kept":         {"\x02" + seg(10, "abc") + seg(12, "de"), "\x02" + seg(10, "abc") + seg(12, "de")},
		"the same offset is kept":    {"\x02" + seg(10, "a") + seg(10, "b"), "\x02" + seg(10, "a") + seg(10, "b")},
		"passive data is kept":       {"\x02\x01\x01x" + seg(10, "b"), "\x02\x01\x01x" + seg(10, "b")},
		"one segment is kept":        {"\x01" + seg(10, "a"), "\x01" + seg(10, "a")},
		"an empty segment is merged": {"\x02" + seg(10, "") + seg(10, "b"), "\x01" + seg(10, "b")},
	} {
		t.Run(name, func(t *testing.T) {
			if got, want := rewriteTrusted(t, binarytest.Module(memory, "\x0b"+c.in)), binarytest.Module(memory, "\x0b"+c.want); !bytes.Equal(got, want) {
				t.Error(cmp.Diff(want, got))
			}
		})
	}
	wide := "\x02" + seg(0, "a") + "\x00\x41\x84\x08\x0b\x01b" // at 1028, beyond mergeGap
	if got, want := rewriteTrusted(t, binarytest.Module(memory, "\x0b"+wide)), binarytest.Module(memory, "\x0b"+wide); !bytes.Equal(got, want) {
		t.Error("a wide gap was filled")
	}
	counted := binarytest.Module(memory, "\x0c\x02", "\x0b\x02"+seg(12, "cd")+seg(10, "ab"))
	if got := rewriteTrusted(t, counted); !bytes.Equal(got, counted) {
		t.Error("segments that code may name by index were merged")
	}
}

// compiles reports whether wazero accepts a module. Its interpreter validates like
// the compiler and takes less time.
func compiles(t testing.TB, wasm []byte) bool {
	t.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithDebugInfoEnabled(false))
	defer rt.Close(ctx)
	_, err := rt.CompileModule(ctx, wasm)
	return err == nil
}
