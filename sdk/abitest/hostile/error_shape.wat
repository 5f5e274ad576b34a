;; sets an error object with a number as its message

(func (export "run") (result i32) (say '{"message":5}') (call $error_set (call $text)) (i32.const 1))
