;; imports an unknown host function
(import "extism:host/user" "sentinel_teleport" (func (param i64) (result i64)))
(func (export "run") (result i32) (call $true) (i32.const 0))
