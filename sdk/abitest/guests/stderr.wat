;; its input is a number; it writes that many bytes to standard error
(import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
(func (export "run") (result i32)
  (memory.fill (i32.const 30000) (i32.const 120) (i32.const 8000))
  (i32.store (i32.const 0) (i32.const 30000))
  (i32.store (i32.const 4) (i32.wrap_i64 (call $arg)))
  (if (call $write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 16)) (then unreachable))
  (say '{"output":') (call $putn (i64.load32_u (i32.const 16))) (say '}') (call $flush) (i32.const 0))
