;; sets an input that does not exist
(import "extism:host/env" "input_set" (func $input_set (param i64 i64)))
(func (export "run") (result i32) (call $input_set (i64.const 4000000000) (i64.const 100)) (drop (call $input_load (i64.const 0))) (call $true) (i32.const 0))
