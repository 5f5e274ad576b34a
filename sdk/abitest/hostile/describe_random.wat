;; describe has a random version
(import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
(func (export "describe") (result i32)
  (drop (call $random (i32.const 512) (i32.const 8)))
  (say '{"name":"a","version":"') (call $putn (i64.load (i32.const 512))) (say '","abi":1,"steps":[{"type":"s","summary":"s","fields":{"type":"object"}}]}') (call $flush) (i32.const 0))
(func (export "run") (result i32) (call $true) (i32.const 0))
