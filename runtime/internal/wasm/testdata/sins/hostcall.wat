;; stateless; sends its input to sentinel_eval and answers {"output":ANSWER}
(import "extism:host/user" "sentinel_eval" (func $eval (param i64) (result i64)))
(data (i32.const 4096) "{\"output\":")
(func (export "run") (result i32) (local $h i64) (local $n i32) (local $i i32)
  (local.set $h (call $eval (call $text (i32.const 4106) (call $input (i32.const 4106)))))
  (local.set $n (i32.wrap_i64 (call $length (local.get $h))))
  (loop $next
    (if (i32.lt_u (local.get $i) (local.get $n)) (then
      (i32.store8 (i32.add (i32.const 4106) (local.get $i))
        (call $load (i64.add (local.get $h) (i64.extend_i32_u (local.get $i)))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br $next))))
  (i32.store8 (i32.add (i32.const 4106) (local.get $n)) (i32.const 125))
  (call $out (i32.const 4096) (i32.add (local.get $n) (i32.const 11)))
  (i32.const 0))
