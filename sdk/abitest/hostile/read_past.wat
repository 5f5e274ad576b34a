;; reads a word across the end of a block

(func (export "run") (result i32) (drop (call $load64 (i64.add (call $alloc (i64.const 8)) (i64.const 4)))) (call $true) (i32.const 0))
