;; opens a path of 60 KB
(import "wasi_snapshot_preview1" "path_open" (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
(func (export "run") (result i32) (drop (call $open (i32.const 3) (i32.const 0) (i32.const 1024) (i32.const 60000) (i32.const 0) (i64.const 0) (i64.const 0) (i32.const 0) (i32.const 8))) (call $true) (i32.const 0))
