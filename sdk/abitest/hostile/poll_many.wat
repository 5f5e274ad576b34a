;; polls 1,001 subscriptions to the clock
(import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
(memory (export "memory") 4)
(func (export "run") (result i32) (drop (call $poll (i32.const 131072) (i32.const 65536) (i32.const 1001) (i32.const 8))) (call $true) (i32.const 0))
