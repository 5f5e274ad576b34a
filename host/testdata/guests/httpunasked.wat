;; imports sentinel_http and does not ask for it
(import "extism:host/user" "sentinel_http" (func $http (param i64) (result i64)))
(func (export "run") (result i32) (i32.wrap_i64 (call $http (i64.const 0))))
