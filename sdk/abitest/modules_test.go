package abitest_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the modules of the kit's guests")

// The prelude is part of every guest without the word bare in its first line: the
// kernel functions, and a buffer for building texts.
const (
	preludeImports = `
(import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
(import "extism:host/env" "free" (func $free (param i64)))
(import "extism:host/env" "length" (func $length (param i64) (result i64)))
(import "extism:host/env" "store_u8" (func $store (param i64 i32)))
(import "extism:host/env" "store_u64" (func $store64 (param i64 i64)))
(import "extism:host/env" "load_u8" (func $load (param i64) (result i32)))
(import "extism:host/env" "load_u64" (func $load64 (param i64) (result i64)))
(import "extism:host/env" "input_length" (func $input_length (result i64)))
(import "extism:host/env" "input_load_u8" (func $input_load (param i64) (result i32)))
(import "extism:host/env" "output_set" (func $output_set (param i64 i64)))
(import "extism:host/env" "error_set" (func $error_set (param i64)))
`
	preludeFunctions = `
;; The buffer is from 40000 to where $w points.
(global $w (mut i32) (i32.const 40000))
;; put adds len bytes at ptr to the buffer.
(func $put (param $ptr i32) (param $len i32)
  (memory.copy (global.get $w) (local.get $ptr) (local.get $len))
  (global.set $w (i32.add (global.get $w) (local.get $len))))
;; putc adds one byte.
(func $putc (param $c i32)
  (i32.store8 (global.get $w) (local.get $c))
  (global.set $w (i32.add (global.get $w) (i32.const 1))))
;; putn adds an unsigned number in decimal.
(func $putn (param $n i64)
  (if (i64.ge_u (local.get $n) (i64.const 10)) (then (call $putn (i64.div_u (local.get $n) (i64.const 10)))))
  (call $putc (i32.add (i32.const 48) (i32.wrap_i64 (i64.rem_u (local.get $n) (i64.const 10))))))
;; puth adds the text of a handle.
(func $puth (param $h i64) (local $i i64) (local $n i64)
  (local.set $n (call $length (local.get $h)))
  (block $end (loop $next
    (br_if $end (i64.ge_u (local.get $i) (local.get $n)))
    (call $putc (call $load (i64.add (local.get $h) (local.get $i))))
    (local.set $i (i64.add (local.get $i) (i64.const 1)))
    (br $next))))
;; text empties the buffer into a block and returns its handle.
(func $text (result i64) (local $h i64) (local $i i32) (local $n i32)
  (local.set $n (i32.sub (global.get $w) (i32.const 40000)))
  (local.set $h (call $alloc (i64.extend_i32_u (local.get $n))))
  (block $end (loop $next
    (br_if $end (i32.ge_u (local.get $i) (local.get $n)))
    (call $store (i64.add (local.get $h) (i64.extend_i32_u (local.get $i))) (i32.load8_u (i32.add (i32.const 40000) (local.get $i))))
    (local.set $i (i32.add (local.get $i) (i32.const 1)))
    (br $next)))
  (global.set $w (i32.const 40000))
  (local.get $h))
;; flush makes the buffer the output.
(func $flush (local $n i32)
  (local.set $n (i32.sub (global.get $w) (i32.const 40000)))
  (call $output_set (call $text) (i64.extend_i32_u (local.get $n))))
;; arg reads the input as a decimal number.
(func $arg (result i64) (local $i i64) (local $n i64)
  (block $end (loop $next
    (br_if $end (i64.ge_u (local.get $i) (call $input_length)))
    (local.set $n (i64.add (i64.mul (local.get $n) (i64.const 10)) (i64.sub (i64.extend_i32_u (call $input_load (local.get $i))) (i64.const 48))))
    (local.set $i (i64.add (local.get $i) (i64.const 1)))
    (br $next)))
  (local.get $n))
;; true is the output of a guest that ends normally.
(func $true (say '{"output":true}') (call $flush))
`
)

var (
	sayMacro        = regexp.MustCompile(`\(say '([^']*)'\)`)
	hostMacro       = regexp.MustCompile(`\(host ([a-z]+)\)`)
	permissionsWord = regexp.MustCompile(`permissions=([a-z,]+)`)
	flagsWord       = regexp.MustCompile(`flags=([-a-z0-9,]+)`)
)

// compose returns the text of a module with a body. The first line of the body is a
// comment that describes the guest and has options: bare is a complete module,
// permissions=llm,http and stateless are added to the manifest, flags=--no-check is passed to
// wat2wasm. In the body, (say 'text') appends a text to the buffer and (host eval)
// imports a host function. A body without describe gets one.
func compose(name, body string) (text string, flags []string) {
	first, _, _ := strings.Cut(body, "\n")
	if m := flagsWord.FindStringSubmatch(first); m != nil {
		flags = strings.Split(m[1], ",")
	}
	if strings.Contains(first, "bare") {
		return body, flags
	}
	manifest := map[string]any{"name": name, "version": "1", "abi": 1, "steps": []any{map[string]any{"type": name, "summary": name, "fields": map[string]any{"type": "object"}}}}
	if m := permissionsWord.FindStringSubmatch(first); m != nil {
		var permissions []any
		for _, use := range strings.Split(m[1], ",") {
			permission := map[string]any{"use": use, "reason": "the kit needs it"}
			switch use {
			case "command", "spawn":
				permission["names"] = []string{"*"}
			case "http":
				permission["names"] = []string{"*.example.com"}
			case "folder":
				permission["names"] = []string{"data:rw"}
			}
			permissions = append(permissions, permission)
		}
		manifest["permissions"] = permissions
	}
	if strings.Contains(first, "stateless") {
		manifest["stateless"] = true
	}
	if !strings.Contains(body, `(export "describe")`) {
		json, err := json.Marshal(manifest)
		if err != nil {
			panic(err)
		}
		body += "\n(func (export \"describe\") (result i32) (say '" + string(json) + "') (call $flush) (i32.const 0))"
	}
	if !strings.Contains(body, "(memory ") {
		body += "\n(memory (export \"memory\") 1)"
	}
	body = hostMacro.ReplaceAllString(body, `(import "extism:host/user" "sentinel_$1" (func $$$1 (param i64) (result i64)))`)
	at := 1024
	var data strings.Builder
	text = sayMacro.ReplaceAllStringFunc(preludeImports+body+preludeFunctions, func(say string) string {
		bytes := sayMacro.FindStringSubmatch(say)[1]
		fmt.Fprintf(&data, "(data (i32.const %d) \"", at)
		for _, b := range []byte(bytes) {
			fmt.Fprintf(&data, "\\%02x", b)
		}
		data.WriteString("\")\n")
		at += len(bytes)
		return fmt.Sprintf("(call $put (i32.const %d) (i32.const %d))", at-len(bytes), len(bytes))
	})
	return "(module " + text + data.String() + ")", flags
}

// The committed modules are built from the texts beside them.
func TestModules(t *testing.T) {
	tool, err := exec.LookPath("wat2wasm")
	if err != nil {
		t.Skip("the modules are not compared with their texts: install wat2wasm with apt-get install wabt")
	}
	files, err := filepath.Glob("*/*.wat")
	if err != nil || len(files) < 60 {
		t.Fatalf("%d texts, %v", len(files), err)
	}
	dir := t.TempDir()
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name := strings.TrimSuffix(filepath.Base(file), ".wat")
			text, flags := compose(name, string(body))
			in, out := filepath.Join(dir, name+".wat"), filepath.Join(dir, name+".wasm")
			if err := os.WriteFile(in, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if said, err := exec.Command(tool, append(flags, in, "-o", out)...).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			made, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			committed := strings.TrimSuffix(file, ".wat") + ".wasm"
			if *update {
				if err := os.WriteFile(committed, made, 0o644); err != nil { //nolint:gosec // it is committed
					t.Fatal(err)
				}
				return
			}
			if have, err := os.ReadFile(committed); err != nil || !bytes.Equal(have, made) {
				t.Errorf("%s differs from the build of its text (%v): run go generate ./sdk/abitest", committed, err)
			}
		})
	}
}
