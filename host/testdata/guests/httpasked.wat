;; permissions=http; imports sentinel_http and asks for it
(import "extism:host/user" "sentinel_http" (func $http (param i64) (result i64)))
(func (export "run") (result i32) (drop (call $http (i64.const 0))) (call $true) (i32.const 0))
