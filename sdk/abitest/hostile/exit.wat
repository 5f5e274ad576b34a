;; leaves by proc_exit with 3
(import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
(func (export "run") (result i32) (call $exit (i32.const 3)) (i32.const 0))
