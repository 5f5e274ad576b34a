;; describe traps or not, as chance has it
(import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
(data (i32.const 2048) "{\"name\":\"moody\",\"version\":\"1\",\"abi\":1,\"steps\":[{\"type\":\"moody\",\"summary\":\"moody\",\"fields\":{\"type\":\"object\"}}]}")
(func (export "describe") (result i32)
  (drop (call $random (i32.const 0) (i32.const 1)))
  (if (i32.and (i32.load8_u (i32.const 0)) (i32.const 1)) (then unreachable))
  (call $out (i32.const 2048) (i32.const 110)) (i32.const 0))
(func (export "run") (result i32) (call $true) (i32.const 0))
