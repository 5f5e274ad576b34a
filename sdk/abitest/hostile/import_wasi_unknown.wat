;; imports an unknown WASI function
(import "wasi_snapshot_preview1" "path_exec" (func (param i32) (result i32)))
(func (export "run") (result i32) (call $true) (i32.const 0))
