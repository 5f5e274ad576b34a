;; writes to stdout what is outside its memory
(import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
(func (export "run") (result i32) (i32.store (i32.const 0) (i32.const -16)) (i32.store (i32.const 4) (i32.const 1000))
  (if (i32.eqz (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16))) (then unreachable))
  (if (i32.eqz (call $write (i32.const 1) (i32.const -8) (i32.const 100) (i32.const 16))) (then unreachable)) (call $true) (i32.const 0))
