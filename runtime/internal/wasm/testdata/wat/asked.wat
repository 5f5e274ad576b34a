;; permissions=llm
(import "extism:host/user" "sentinel_llm" (func $llm (param i64) (result i64)))
(func (export "run") (result i32) (drop (call $llm (i64.const 0))) (call $true) (i32.const 0))
