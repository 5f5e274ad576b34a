;; reads a block at the end of the address space

(func (export "run") (result i32) (drop (call $load64 (i64.const -1))) (call $true) (i32.const 0))
