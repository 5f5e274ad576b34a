;; claims three megabytes of output
(func (export "run") (result i32) (local $h i64)
  (local.set $h (call $alloc (i64.const 3000000)))
  (call $output_set (local.get $h) (i64.const 3000000)) (i32.const 0))
