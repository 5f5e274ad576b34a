;; imports from an unknown module
(import "wasi_unstable" "fd_write" (func (param i32 i32 i32 i32) (result i32)))
(func (export "run") (result i32) (call $true) (i32.const 0))
