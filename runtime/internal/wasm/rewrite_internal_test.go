package wasm

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"
)

// These tests are inside of the package because the only effect of the rewrite that
// a caller sees is that a guest can be stopped.

// module returns a module with sections, each of which is an id and its content.
func module(sections ...string) []byte {
	out := []byte("\x00asm\x01\x00\x00\x00")
	for _, s := range sections {
		out = append(out, s[0])
		out = appendU32(out, uint32(len(s)-1))
		out = append(out, s[1:]...)
	}
	return out
}

// rewriteTrusted scans and rewrites a trusted module.
func rewriteTrusted(t *testing.T, wasm []byte) []byte {
	t.Helper()
	l, err := scan(wasm, true)
	if err != nil {
		t.Fatal(err)
	}
	return rewrite(l)
}

func TestLoopWrap(t *testing.T) {
	for name, c := range map[string]struct{ in, want []byte }{
		"no result, custom section dropped": {
			module("\x00\x01xy", "\x01\x01\x60\x00\x00", "\x03\x01\x00", "\x0a\x01\x04\x01\x01\x7f\x0b"),
			module("\x01\x01\x60\x00\x00", "\x03\x01\x00", "\x0a\x01\x0a\x01\x01\x7f\x03\x40\x02\x40\x0b\x0b\x0b"),
		},
		"one result": {
			module("\x01\x01\x60\x00\x01\x7e", "\x03\x01\x00", "\x0a\x01\x04\x00\x42\x05\x0b"),
			module("\x01\x01\x60\x00\x01\x7e", "\x03\x01\x00", "\x0a\x01\x0a\x00\x03\x7e\x02\x7e\x42\x05\x0b\x0b\x0b"),
		},
		// (i32) -> (i32, i32) needs a type () -> (i32, i32), which is added.
		"two results": {
			module("\x01\x01\x60\x01\x7f\x02\x7f\x7f", "\x03\x01\x00", "\x0a\x01\x06\x00\x20\x00\x20\x00\x0b"),
			module("\x01\x02\x60\x01\x7f\x02\x7f\x7f\x60\x00\x02\x7f\x7f", "\x03\x01\x00", "\x0a\x01\x0c\x00\x03\x01\x02\x01\x20\x00\x20\x00\x0b\x0b\x0b"),
		},
		"two results, type declared already": {
			module("\x01\x01\x60\x00\x02\x7f\x7f", "\x03\x01\x00", "\x0a\x01\x06\x00\x41\x00\x41\x00\x0b"),
			module("\x01\x01\x60\x00\x02\x7f\x7f", "\x03\x01\x00", "\x0a\x01\x0c\x00\x03\x00\x02\x00\x41\x00\x41\x00\x0b\x0b\x0b"),
		},
		"table gets a maximum": {
			module("\x04\x01\x70\x00\x05"), module("\x04\x01\x70\x01\x05\xa0\x8d\x06"),
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
		return "\x00\x41" + string(appendS64(nil, int64(at))) + "\x0b" + string(rune(len(data))) + data
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
			if got, want := rewriteTrusted(t, module(memory, "\x0b"+c.in)), module(memory, "\x0b"+c.want); !bytes.Equal(got, want) {
				t.Error(cmp.Diff(want, got))
			}
		})
	}
	wide := "\x02" + seg(0, "a") + "\x00\x41\x84\x08\x0b\x01b" // at 1028, beyond mergeGap
	if got, want := rewriteTrusted(t, module(memory, "\x0b"+wide)), module(memory, "\x0b"+wide); !bytes.Equal(got, want) {
		t.Error("a wide gap was filled")
	}
	counted := module(memory, "\x0c\x02", "\x0b\x02"+seg(12, "cd")+seg(10, "ab"))
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

// FuzzScan: a scan does not panic, and wazero accepts the rewrite of every module
// that the scan and wazero accept.
func FuzzScan(f *testing.F) {
	files, err := filepath.Glob("testdata/wat/*.wasm")
	if err != nil || len(files) == 0 {
		f.Fatal("no guests", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add(module("\x01\x01\x60\x01\x7f\x02\x7f\x7f", "\x03\x01\x00", "\x0a\x01\x06\x00\x20\x00\x20\x00\x0b"))
	for _, code := range bulkInstructions {
		f.Add(bulkModuleWith(code))
	}
	f.Add(module("\x04\x01\x70\x00\x01", "\x09\x01\x00\x41\x00\x0b\x00"))
	f.Fuzz(func(t *testing.T, wasm []byte) {
		l, err := scan(wasm, false)
		if err != nil {
			return
		}
		_, _ = l.checkExports()
		_, _ = l.checkImports(nil)
		out := rewrite(l)
		if _, err := scan(out, true); err != nil {
			t.Fatalf("the rewritten module does not scan: %v", err)
		}
		if l.memMin < 16 && compiles(t, wasm) && !compiles(t, out) {
			t.Fatalf("wazero accepts %x and not its rewrite %x", wasm, out)
		}
	})
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"name":"a","version":"1","abi":1,"steps":[{"type":"a","summary":"s","fields":{"type":"object"}}],"asks":[{"use":"llm","reason":"r"}]}`))
	f.Add([]byte(`{"abi":2}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := parseManifest(text)
		if err == nil && (len(m.Steps) == 0 || !identifier.MatchString(m.Name)) {
			t.Fatalf("%q was decoded as %+v", text, m)
		}
	})
}

func TestManifestFaults(t *testing.T) {
	step := `{"type":"a","summary":"s","fields":{"type":"object"}}`
	for text, want := range map[string]string{
		`nonsense`: "describe: invalid manifest: line 1, column",
		`{"name":"a","version":"1","abi":2,"steps":[],"later":1}`:                                            "speaks ABI 2",
		`{"name":"A b","version":"1","abi":1,"steps":[` + step + `]}`:                                        `name "A b"`,
		`{"name":"a","version":"1","abi":1,"steps":[]}`:                                                      "steps is empty",
		`{"name":"a","version":"1","abi":1,"steps":[` + step + `,` + step + `]}`:                             "is listed twice",
		`{"name":"a","version":"1","abi":1,"steps":[{"type":"a","summary":"s","fields":{"type":"array"}}]}`:  "not a JSON Schema of type object",
		`{"name":"a","version":"1","abi":1,"steps":[` + step + `],"asks":[{"use":"root","reason":"x"}]}`:     `"root" is not known`,
		`{"name":"a","version":"1","abi":1,"steps":[` + step + `],"asks":[{"use":"llm"}]}`:                   "reason is empty",
		`{"name":"a","version":"1","abi":1,"steps":[` + step + `],"ask":[{"use":"llm","reason":"r"}]}`:       `unknown key "ask"`,
		`{"name":"a","NAME":"b","version":"1","abi":1,"steps":[` + step + `]}`:                               `unknown key "NAME"`,
		`{"name":"a","version":"1","abi":1,"Abi":1,"steps":[` + step + `]}`:                                  `unknown key "Abi"`,
		`{"name":"a","version":"1","abi":1,"steps":[` + step + `],"ASKS":[{"use":"llm","reason":"r"}]}`:      `unknown key "ASKS"`,
		`{"name":"a","version":"1","abi":1,"steps":[` + step + `],"name":"b"}`:                               `duplicate key "name"`,
		`{"name":"a","version":"1","abi":1,"steps":[` + step + `],"asks":[],"\u0061sks":[]}`:                 `duplicate key "asks"`,
		`{"name":"a","version":"1","abi":1,"steps":[{"type":"a","summary":"s","fields":{"Type":"object"}}]}`: "not a JSON Schema of type object",
		asking("command", "code/re*"):            `asks[0].names[0] "code/re*" is not a command`,
		asking("command", "/*"):                  "is not a command",
		asking("command", "*/read"):              "is not a command",
		asking("llm", "open*ai"):                 "has a * before its end",
		asking("emit", "*:done"):                 "has a * before its end",
		asking("folder", "../data"):              "does not match",
		asking("secret", "token"):                "does not match",
		asking("http", "a b.example.com"):        "without spaces",
		asking("http", strings.Repeat("a", 257)): "1 to 256 bytes",
		`{"name":"a","version":"1","abi":1,"steps":[` + strings.Repeat(step+",", 10_000) + step + `],"asks":[]}`: "the limit is 262144",
	} {
		if _, err := parseManifest([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("parseManifest(%.90s): %v, want %q", text, err, want)
		}
	}
}

// asking returns a manifest that asks for one name of a use.
func asking(use, name string) string {
	return fmt.Sprintf(`{"name":"a","version":"1","abi":1,"steps":[{"type":"a","summary":"s","fields":{"type":"object"}}],"asks":[{"use":%q,"names":[%q],"reason":"r"}]}`, use, name)
}

func TestManifestNames(t *testing.T) {
	for use, names := range map[string][]string{
		"command": {"*", "code/*", "code/read", "mcp/a/b"}, "llm": {"*", "openai/*", "gpt-5"}, "emit": {"git:*", "done"}, "spawn": {"*", "nightly"},
		"folder": {"data", "data:rw"}, "secret": {"TOKEN"}, "http": {"api.example.com", "*.example.com:8443"},
	} {
		for _, name := range names {
			if _, err := parseManifest([]byte(asking(use, name))); err != nil {
				t.Errorf("%s %q: %v", use, name, err)
			}
		}
	}
}

func TestArena(t *testing.T) {
	a := newArena(1 << 20)
	defer a.close()
	for _, size := range []uint64{64 << 10, 600 << 10} { // cleared by hand, and by the kernel
		ms := &memories{arena: a, limit: 700 << 10}
		ms.list = append(ms.list, nil) // the kernel's place
		m := ms.Allocate(0, 1<<32)
		b := m.Reallocate(size)
		if uint64(len(b)) != size || a.resident.Load() != int64(size) {
			t.Fatalf("%d bytes, %d resident, want %d", len(b), a.resident.Load(), size)
		}
		for i, c := range b {
			if c != 0 {
				t.Fatalf("byte %d is %d in a new memory", i, c)
			}
			b[i] = 0xaa
		}
		if m.Reallocate(700<<10) == nil || m.growErr != nil {
			t.Error("a memory did not grow to its limit")
		}
		if m.Reallocate(701<<10) != nil || m.growErr == nil {
			t.Error("a memory grew beyond its limit")
		}
		m.Free()
		m.Free()
		if a.resident.Load() != 0 {
			t.Errorf("%d bytes are resident after Free", a.resident.Load())
		}
	}
	if len(a.free[700<<10]) != 1 {
		t.Errorf("%d regions are kept, want the one that was used twice", len(a.free[700<<10]))
	}
}
