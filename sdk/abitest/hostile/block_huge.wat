;; allocates a block of nearly 2^64 bytes

(func (export "run") (result i32) (drop (call $alloc (i64.const -8))) (call $true) (i32.const 0))
