;; stateless; sends its input to sentinel_eval and answers {"output":ANSWER}
(import "extism:host/user" "sentinel_eval" (func $eval (param i64) (result i64)))
(data (i32.const 4096) "{\"output\":")
(func (export "run") (result i32) (local $h i64) (local $n i32)
  (local.set $h (call $eval (call $text (i32.const 4106) (call $input (i32.const 4106)))))
  (local.set $n (call $fetch (local.get $h) (i32.const 4106)))
  (i32.store8 (i32.add (i32.const 4106) (local.get $n)) (i32.const 125))
  (call $out (i32.const 4096) (i32.add (local.get $n) (i32.const 11)))
  (i32.const 0))
