package wasm_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestLoadRejects: modules that are malformed, exceed a limit or do not match the
// ABI are rejected with an error that names the fault.
func TestLoadRejects(t *testing.T) {
	h := open(t, wasm.Options{})
	head := []byte("\x00asm\x01\x00\x00\x00")
	for _, c := range []struct {
		name  string
		bytes []byte
		code  abi.Code
		words string
	}{
		{"nothing", nil, abi.BadFields, "not a WebAssembly module"},
		{"text", []byte("hello, world"), abi.BadFields, "not a WebAssembly module"},
		{"component", []byte("\x00asm\x0d\x00\x01\x00"), abi.BadFields, "component"},
		{"version", []byte("\x00asm\x02\x00\x00\x00"), abi.BadFields, "version 2, want 1"},
		{"empty module", head, abi.BadFields, `link "describe": no such export`},
		{"half a file", watGuest(t, "echo")[:300], abi.BadFields, "byte"},
		{"too large", make([]byte, 32<<20+1), abi.Limit, "bytes, at most"},
		// One function of type () -> () that declares 4,294,967,295 i64 locals.
		{"four billion locals", cat(head, "\x01\x04\x01\x60\x00\x00", "\x03\x02\x01\x00", "\x0a\x0a\x01\x08\x01\xff\xff\xff\xff\x0f\x7e\x0b"), abi.BadFields, "more than 50000 locals"},
		{"four billion types", cat(head, "\x01\x05\xff\xff\xff\xff\x0f"), abi.BadFields, "4294967295 types"},
		{"huge table", cat(head, "\x04\x07\x01\x70\x00\xff\xff\xff\x7f"), abi.BadFields, "table entries"},
		{"huge memory", cat(head, "\x05\x06\x01\x00\xff\xff\xff\x7f"), abi.BadFields, "memory pages"},
		{"shared memory", cat(head, "\x05\x04\x01\x03\x01\x01"), abi.BadFields, "beyond WebAssembly 2.0"},
		{"repeated section", cat(head, "\x01\x01\x00", "\x01\x01\x00"), abi.BadFields, "repeated or out of order"},
		{"huge function", nopModule(600 << 10), abi.BadFields, "bytes, at most 524288 are allowed"},
		{"nested loops over many locals", functionModule(4000, strings.Repeat("\x03\x40", 300)+readLocals(4000)+strings.Repeat("\x0b", 300)), abi.BadFields, "too long to compile: it has 302 branches, 301 loops and 4000 locals"},
		{"many branches", functionModule(1, "\x03\x40"+strings.Repeat("\x0c\x00", 60_000)+"\x0b"), abi.BadFields, "too long to compile"},
		{"unknown instruction", functionModule(1, "\x06\x40\x0b"), abi.BadFields, "instruction 0x6 is beyond WebAssembly 2.0"},
		{"wrong export", watGuest(t, "wrongexport"), abi.BadFields, `link "run": export of type (i64) -> i32, want () -> i32`},
		{"no run", watGuest(t, "norun"), abi.BadFields, `link "run": no such export`},
		{"wrong import", watGuest(t, "wrongimport"), abi.BadFields, `link "sentinel_eval": import of type (i32) -> i32, want (i64) -> i64`},
		{"unknown import", watGuest(t, "unknownimport"), abi.BadFields, `link "sentinel_teleport": module "extism:host/user" offers no such import`},
		{"imported memory", watGuest(t, "memoryimport"), abi.BadFields, `link "memory": module "env" offers no such import`},
		{"kernel http", watGuest(t, "http"), abi.BadFields, `link "http_request"`},
		{"unasked import", watGuest(t, "unasked"), abi.Denied, `imports it without asking for "llm"`},
		{"calls in describe", watGuest(t, "describecalls"), abi.Plugin, "speaks ABI 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := h.Load(context.Background(), c.bytes, wasm.LoadOptions{})
			wantError(t, err, c.code, c.words)
		})
	}
}

func cat(head []byte, sections ...string) []byte {
	out := bytes.Clone(head)
	for _, s := range sections {
		out = append(out, s...)
	}
	return out
}

// nopModule is a module with one function of n nops.
func nopModule(n int) []byte { return functionModule(0, strings.Repeat("\x01", n)) }

// functionModule is a module with one function that has i32 locals and code.
func functionModule(locals int, code string) []byte {
	body := "\x01" + leb(locals) + "\x7f" + code + "\x0b"
	content := "\x01" + leb(len(body)) + body
	return cat([]byte("\x00asm\x01\x00\x00\x00"), "\x01\x04\x01\x60\x00\x00", "\x03\x02\x01\x00", "\x0a"+leb(len(content))+content)
}

// readLocals is code that reads and drops each of as many locals.
func readLocals(locals int) string {
	var code strings.Builder
	for i := range locals {
		code.WriteString("\x20" + leb(i) + "\x1a")
	}
	return code.String()
}

func leb(n int) string {
	var b []byte
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return string(append(b, byte(n)))
}

// TestLoadThatDoesNotEnd: a start section, an initialiser and a describe that loop
// are ended by the time limit.
func TestLoadThatDoesNotEnd(t *testing.T) {
	h := open(t, wasm.Options{})
	for _, name := range []string{"startloop", "initloop", "describeloop"} {
		t.Run(name, func(t *testing.T) {
			err := abi.New(abi.Cancelled, "the compile did not finish")
			for limit := 100 * time.Millisecond; abi.CodeOf(err) == abi.Cancelled && limit < time.Minute; limit *= 2 {
				ctx, cancel := context.WithTimeout(context.Background(), limit)
				_, loadErr := h.Load(ctx, watGuest(t, name), wasm.LoadOptions{})
				cancel()
				if err = abi.As(loadErr); err == nil {
					t.Fatalf("Load: %v", loadErr)
				}
			}
			wantError(t, err, abi.Timeout, "time limit")
		})
	}
}

// TestLoadAllow: Allow sees the manifest, and its error is the error of Load.
func TestLoadAllow(t *testing.T) {
	h := open(t, wasm.Options{})
	no := errors.New("not granted")
	var seen wasm.Manifest
	_, err := h.Load(context.Background(), watGuest(t, "asked"), wasm.LoadOptions{Allow: func(m wasm.Manifest) error { seen = m; return no }})
	if err != no {
		t.Errorf("Load: %v, want the error of Allow", err)
	}
	if want := []wasm.Permission{{Use: "llm", Reason: "the test needs it"}}; !cmp.Equal(seen.Permissions, want) {
		t.Error(cmp.Diff(want, seen.Permissions))
	}
	m := load(t, h, watGuest(t, "asked"), wasm.LoadOptions{})
	defer m.Release()
	if got := m.Functions(); !cmp.Equal(got, []string{"sentinel_llm"}) {
		t.Errorf("Functions: %v", got)
	}
}

func TestInspect(t *testing.T) {
	info, err := wasm.Inspect(watGuest(t, "hostcall"))
	if err != nil {
		t.Fatal(err)
	}
	if want := (wasm.Import{Module: "extism:host/user", Name: "sentinel_eval", Type: "(i64) -> i64"}); !contains(info.Imports, want) {
		t.Errorf("imports %v lack %v", info.Imports, want)
	}
	if want := (wasm.Export{Name: "run", Type: "() -> i32"}); !contains(info.Exports, want) {
		t.Errorf("exports %v lack %v", info.Exports, want)
	}
	if info, err := wasm.Inspect([]byte("\x00asm\x0d\x00\x01\x00rest")); err != nil || !info.Component {
		t.Errorf("Inspect of a component: %+v, %v", info, err)
	}
}

func contains[T comparable](list []T, want T) bool {
	for _, v := range list {
		if v == want {
			return true
		}
	}
	return false
}

func TestValidate(t *testing.T) {
	h := open(t, wasm.Options{})
	m := load(t, h, watGuest(t, "validate"), wasm.LoadOptions{})
	defer m.Release()
	got, err := m.Validate(context.Background(), "validate", []byte(`{"url":""}`))
	if err != nil {
		t.Fatal(err)
	}
	if want := []wasm.Problem{{Field: "url", Message: "is empty", Hint: "set it"}}; !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	without := load(t, h, watGuest(t, "echo"), wasm.LoadOptions{})
	defer without.Release()
	if got, err := without.Validate(context.Background(), "echo", []byte(`{}`)); got != nil || err != nil {
		t.Errorf("Validate without the export: %v, %v", got, err)
	}
}
