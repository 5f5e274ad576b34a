;; overflows the stack
(func $deeper (param i32) (result i32)
  (i32.add (call $deeper (i32.add (local.get 0) (i32.const 1))) (i32.const 1)))
(func (export "run") (result i32) (drop (call $deeper (i32.const 0))) (i32.const 0))
