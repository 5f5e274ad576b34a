;; sets an error of a megabyte

(func (export "run") (result i32) (call $error_set (call $alloc (i64.const 1000000))) (i32.const 1))
