;; writes over the call kernel's own lists, then makes a host call; the byte to write is its input's first
(import "extism:host/user" "sentinel_eval" (func $eval (param i64) (result i64)))
(func (export "run") (result i32) (local $i i64) (local $h i64) (local $v i64)
  (local.set $v (i64.mul (i64.extend_i32_u (call $input_load (i64.const 0))) (i64.const 0x0101010101010101)))
  (local.set $h (call $text (i32.const 960) (i32.const 15)))
  (local.set $i (i64.const 0))
  (loop $next
    (call $store64 (local.get $i) (local.get $v))
    (local.set $i (i64.add (local.get $i) (i64.const 8)))
    (br_if $next (i64.lt_u (local.get $i) (i64.const 1048576))))
  (drop (call $eval (local.get $h)))
  (drop (call $alloc (i64.const 100)))
  (call $true) (i32.const 0))
