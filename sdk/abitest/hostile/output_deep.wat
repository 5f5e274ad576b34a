;; writes an output of 20,000 nested lists
(func (export "run") (result i32) (local $i i32)
  (say '{"output":')
  (loop $next (call $putc (i32.const 91)) (local.set $i (i32.add (local.get $i) (i32.const 1))) (br_if $next (i32.lt_u (local.get $i) (i32.const 10000))))
  (loop $back (call $putc (i32.const 93)) (local.set $i (i32.sub (local.get $i) (i32.const 1))) (br_if $back (local.get $i)))
  (say '}') (call $flush) (i32.const 0))
