;; writes over a megabyte of call memory

(func (export "run") (result i32) (local $i i64)
  (loop $next (call $store64 (local.get $i) (i64.const 0x0101010101010101)) (local.set $i (i64.add (local.get $i) (i64.const 8)))
    (br_if $next (i64.lt_u (local.get $i) (i64.const 1048576)))) (call $true) (i32.const 0))
