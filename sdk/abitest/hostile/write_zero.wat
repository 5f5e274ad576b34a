;; writes to the block at 0

(func (export "run") (result i32) (call $store (i64.const 0) (i32.const 255)) (call $true) (i32.const 0))
