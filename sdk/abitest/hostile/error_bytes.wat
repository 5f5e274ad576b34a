;; sets an error that is not UTF-8

(func (export "run") (result i32) (call $putc (i32.const 0xff)) (call $putc (i32.const 0xfe)) (call $error_set (call $text)) (i32.const 1))
