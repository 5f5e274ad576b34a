;; its input is a number, and its output has that many bytes
(func (export "run") (result i32) (local $n i64) (local $h i64) (local $i i64)
  (local.set $n (call $arg))
  (local.set $h (call $alloc (local.get $n)))
  (block $end (loop $next
    (br_if $end (i64.gt_u (i64.add (local.get $i) (i64.const 8)) (local.get $n)))
    (call $store64 (i64.add (local.get $h) (local.get $i)) (i64.const 0x7878787878787878))
    (local.set $i (i64.add (local.get $i) (i64.const 8)))
    (br $next)))
  (block $end (loop $next
    (br_if $end (i64.ge_u (local.get $i) (local.get $n)))
    (call $store (i64.add (local.get $h) (local.get $i)) (i32.const 120))
    (local.set $i (i64.add (local.get $i) (i64.const 1)))
    (br $next)))
  (call $store64 (local.get $h) (i64.const 0x74757074756f227b)) ;; {"output
  (call $store (i64.add (local.get $h) (i64.const 8)) (i32.const 34))
  (call $store (i64.add (local.get $h) (i64.const 9)) (i32.const 58))
  (call $store (i64.add (local.get $h) (i64.const 10)) (i32.const 34))
  (call $store (i64.add (local.get $h) (i64.sub (local.get $n) (i64.const 2))) (i32.const 34))
  (call $store (i64.add (local.get $h) (i64.sub (local.get $n) (i64.const 1))) (i32.const 125))
  (call $output_set (local.get $h) (local.get $n)) (i32.const 0))
