;; writes to stderr forever
(import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
(func (export "run") (result i32) (i32.store (i32.const 4) (i32.const 1000)) (loop $again (drop (call $write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 16))) (br $again)) (i32.const 0))
