;; writes a million log lines
(host log)
(func (export "run") (result i32) (local $i i32) (local $h i64)
  (say '{"level":"info","message":"a line of the flood"}') (local.set $h (call $text))
  (loop $next (call $free (call $log (local.get $h)))
    (local.set $i (i32.add (local.get $i) (i32.const 1))) (br_if $next (i32.lt_u (local.get $i) (i32.const 1000000)))) (call $true) (i32.const 0))
