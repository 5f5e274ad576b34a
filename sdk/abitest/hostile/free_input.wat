;; frees its input, then reads it
(import "extism:host/env" "input_offset" (func $input_offset (result i64)))
(func (export "run") (result i32) (call $free (call $input_offset)) (drop (call $input_load (i64.const 0))) (call $true) (i32.const 0))
