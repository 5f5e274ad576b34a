;; imports an unknown kernel function
(import "extism:host/env" "exec" (func (param i64) (result i64)))
(func (export "run") (result i32) (call $true) (i32.const 0))
