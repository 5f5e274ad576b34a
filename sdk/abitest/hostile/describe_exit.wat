;; describe ends by proc_exit
(import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
(func (export "describe") (result i32) (call $exit (i32.const 0)) (i32.const 0))
(func (export "run") (result i32) (i32.const 0))
