;; names more output than its block has

(func (export "run") (result i32) (call $output_set (call $alloc (i64.const 16)) (i64.const 1000000)) (i32.const 0))
