;; sets an output that does not exist

(func (export "run") (result i32) (call $output_set (i64.const 4000000000) (i64.const 100)) (i32.const 0))
