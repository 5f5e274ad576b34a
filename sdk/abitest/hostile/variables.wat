;; keeps a text in a variable of the kernel
(import "extism:host/env" "var_set" (func $var_set (param i64 i64)))
(func (export "run") (result i32) (say 'key') (call $var_set (call $text) (call $alloc (i64.const 10))) (call $true) (i32.const 0))
