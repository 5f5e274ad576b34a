;; allocates a block of 4 GiB

(func (export "run") (result i32) (drop (call $alloc (i64.const 0x100000000))) (call $true) (i32.const 0))
