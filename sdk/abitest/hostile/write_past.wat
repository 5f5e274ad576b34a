;; writes the byte after a block

(func (export "run") (result i32) (call $store (i64.add (call $alloc (i64.const 8)) (i64.const 8)) (i32.const 255)) (call $true) (i32.const 0))
