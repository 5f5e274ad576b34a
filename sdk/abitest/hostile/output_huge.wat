;; writes three megabytes

(func (export "run") (result i32) (call $output_set (call $alloc (i64.const 3000000)) (i64.const 3000000)) (i32.const 0))
