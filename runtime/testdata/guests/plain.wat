;; A plugin of any manifest that answers {"output":true}. Tests put the manifest
;; in place of the text that begins with MANIFEST, padded with spaces to 2,048
;; bytes. `wat2wasm plain.wat -o plain.wasm` makes the file beside it.
(module
  (import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
  (import "extism:host/env" "store_u8" (func $store (param i64 i32)))
  (import "extism:host/env" "output_set" (func $output_set (param i64 i64)))
  (memory (export "memory") 1)
  (func $out (param $ptr i32) (param $len i32) (result i32) (local $h i64) (local $i i32)
    (local.set $h (call $alloc (i64.extend_i32_u (local.get $len))))
    (loop $next
      (call $store (i64.add (local.get $h) (i64.extend_i32_u (local.get $i)))
        (i32.load8_u (i32.add (local.get $ptr) (local.get $i))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $i) (local.get $len))))
    (call $output_set (local.get $h) (i64.extend_i32_u (local.get $len)))
    (i32.const 0))
  (func (export "describe") (result i32) (call $out (i32.const 1024) (i32.const 2048)))
  (func (export "run") (result i32) (call $out (i32.const 960) (i32.const 15)))
  (data (i32.const 960) "{\"output\":true}")
  (data (i32.const 1024) "MANIFEST                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                        "))
