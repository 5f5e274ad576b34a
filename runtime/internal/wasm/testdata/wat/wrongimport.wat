;; imports sentinel_eval with another type
(import "extism:host/user" "sentinel_eval" (func $eval (param i32) (result i32)))
(func (export "run") (result i32) (call $eval (i32.const 0)))
