;; writes to the end of the address space

(func (export "run") (result i32) (call $store64 (i64.const -8) (i64.const -1)) (call $true) (i32.const 0))
