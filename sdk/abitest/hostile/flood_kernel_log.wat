;; writes a million lines to the log of the kernel
(import "extism:host/env" "log_info" (func $info (param i64)))
(func (export "run") (result i32) (local $i i32)
  (loop $next (say 'a line') (call $info (call $text))
    (local.set $i (i32.add (local.get $i) (i32.const 1))) (br_if $next (i32.lt_u (local.get $i) (i32.const 1000000)))) (call $true) (i32.const 0))
