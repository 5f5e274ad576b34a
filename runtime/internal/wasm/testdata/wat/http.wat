;; permissions=http; imports the call kernel's own
(import "extism:host/env" "http_request" (func $http (param i64 i64) (result i64)))
(func (export "run") (result i32) (i32.wrap_i64 (call $http (i64.const 0) (i64.const 0))))
