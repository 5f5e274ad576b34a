;; reads the block at 0

(func (export "run") (result i32) (drop (call $load (i64.const 0))) (call $true) (i32.const 0))
