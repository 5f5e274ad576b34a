;; reads a block that it freed

(func (export "run") (result i32) (local $h i64) (local.set $h (call $alloc (i64.const 8))) (call $free (local.get $h)) (drop (call $load (local.get $h))) (call $true) (i32.const 0))
