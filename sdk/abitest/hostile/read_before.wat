;; reads the byte before a block

(func (export "run") (result i32) (drop (call $load (i64.sub (call $alloc (i64.const 8)) (i64.const 1)))) (call $true) (i32.const 0))
