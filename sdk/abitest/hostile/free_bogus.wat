;; frees an invalid handle, and one block twice

(func (export "run") (result i32) (local $h i64)
  (call $free (i64.const 0)) (call $free (i64.const -1)) (call $free (i64.const 12345678))
  (local.set $h (call $alloc (i64.const 64))) (call $free (i64.add (local.get $h) (i64.const 1)))
  (call $free (local.get $h)) (call $free (local.get $h)) (call $true) (i32.const 0))
