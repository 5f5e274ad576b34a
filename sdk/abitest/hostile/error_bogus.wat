;; sets an error that does not exist

(func (export "run") (result i32) (call $error_set (i64.const 123456789)) (i32.const 1))
