;; sleeps forever
(import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
(func (export "run") (result i32) (local $i i32)
  (i64.store (i32.const 24) (i64.const 0x7fffffffffffffff)) (i32.store (i32.const 16) (i32.const 1))
  (loop $again (drop (call $poll (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 128))) (br $again)) (i32.const 0))
