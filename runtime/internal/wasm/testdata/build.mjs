// Makes wat/*.wasm from wat/*.wat; see README.md.
import { createRequire } from "node:module";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";

const wabt = await createRequire(import.meta.url)(process.argv[2])();
const imports = `
(import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
(import "extism:host/env" "length" (func $length (param i64) (result i64)))
(import "extism:host/env" "store_u8" (func $store (param i64 i32)))
(import "extism:host/env" "store_u64" (func $store64 (param i64 i64)))
(import "extism:host/env" "load_u8" (func $load (param i64) (result i32)))
(import "extism:host/env" "load_u64" (func $load64 (param i64) (result i64)))
(import "extism:host/env" "input_length" (func $input_length (result i64)))
(import "extism:host/env" "input_load_u8" (func $input_load (param i64) (result i32)))
(import "extism:host/env" "input_load_u64" (func $input_load64 (param i64) (result i64)))
(import "extism:host/env" "output_set" (func $output_set (param i64 i64)))
(import "extism:host/env" "error_set" (func $error_set (param i64)))
`;
const helpers = `
;; text copies len bytes at ptr to call memory, by words while there are any, and returns the handle.
(func $text (param $ptr i32) (param $len i32) (result i64) (local $h i64) (local $i i32)
  (local.set $h (call $alloc (i64.extend_i32_u (local.get $len))))
  (loop $next
    (if (i32.le_u (i32.add (local.get $i) (i32.const 8)) (local.get $len)) (then
      (call $store64 (i64.add (local.get $h) (i64.extend_i32_u (local.get $i)))
        (i64.load (i32.add (local.get $ptr) (local.get $i))))
      (local.set $i (i32.add (local.get $i) (i32.const 8)))
      (br $next)))
    (if (i32.lt_u (local.get $i) (local.get $len)) (then
      (call $store (i64.add (local.get $h) (i64.extend_i32_u (local.get $i)))
        (i32.load8_u (i32.add (local.get $ptr) (local.get $i))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br $next))))
  (local.get $h))
;; fetch copies the text of a handle to ptr and returns its length.
(func $fetch (param $h i64) (param $ptr i32) (result i32) (local $i i32) (local $n i32)
  (local.set $n (i32.wrap_i64 (call $length (local.get $h))))
  (loop $next
    (if (i32.le_u (i32.add (local.get $i) (i32.const 8)) (local.get $n)) (then
      (i64.store (i32.add (local.get $ptr) (local.get $i)) (call $load64 (i64.add (local.get $h) (i64.extend_i32_u (local.get $i)))))
      (local.set $i (i32.add (local.get $i) (i32.const 8)))
      (br $next)))
    (if (i32.lt_u (local.get $i) (local.get $n)) (then
      (i32.store8 (i32.add (local.get $ptr) (local.get $i)) (call $load (i64.add (local.get $h) (i64.extend_i32_u (local.get $i)))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br $next))))
  (local.get $n))
(func $out (param $ptr i32) (param $len i32)
  (call $output_set (call $text (local.get $ptr) (local.get $len)) (i64.extend_i32_u (local.get $len))))
;; input copies the input to ptr and returns its length.
(func $input (param $ptr i32) (result i32) (local $i i64) (local $n i64)
  (local.set $n (call $input_length))
  (loop $next
    (if (i64.le_u (i64.add (local.get $i) (i64.const 8)) (local.get $n)) (then
      (i64.store (i32.add (local.get $ptr) (i32.wrap_i64 (local.get $i))) (call $input_load64 (local.get $i)))
      (local.set $i (i64.add (local.get $i) (i64.const 8)))
      (br $next)))
    (if (i64.lt_u (local.get $i) (local.get $n)) (then
      (i32.store8 (i32.add (local.get $ptr) (i32.wrap_i64 (local.get $i))) (call $input_load (local.get $i)))
      (local.set $i (i64.add (local.get $i) (i64.const 1)))
      (br $next))))
  (i32.wrap_i64 (local.get $n)))
;; true writes {"output":true}
(func $true (call $out (i32.const 960) (i32.const 15)))
(data (i32.const 960) "{\\"output\\":true}")
`;
const dir = new URL("wat/", import.meta.url);
for (const file of readdirSync(dir).filter((f) => f.endsWith(".wat"))) {
  const body = readFileSync(new URL(file, dir), "utf8");
  const name = file.replace(".wat", "");
  const first = body.split("\n")[0];
  const manifest = { name, version: "1", abi: 1, steps: [{ type: name, summary: name, fields: { type: "object" } }] };
  const permissions = /permissions=([a-z,]+)/.exec(first);
  if (permissions) manifest.permissions = permissions[1].split(",").map((use) => ({ use, reason: "the test needs it" }));
  if (/stateless/.test(first)) manifest.stateless = true;
  if (/handles/.test(first)) manifest.handles = true;
  const text = JSON.stringify(manifest);
  let source = imports + body + helpers;
  if (!body.includes("(memory ")) source += `(memory (export "memory") 1)`;
  if (!body.includes('(export "describe")'))
    source += `(data (i32.const 1024) ${JSON.stringify(text).replaceAll("\\\\", "\\")})
      (func (export "describe") (result i32) (call $out (i32.const 1024) (i32.const ${text.length})) (i32.const 0))`;
  const module = wabt.parseWat(file, `(module ${source})`);
  module.resolveNames();
  module.validate({ reference_types: true, multi_value: true, bulk_memory: true });
  writeFileSync(new URL(name + ".wasm", dir), module.toBinary({}).buffer);
}
