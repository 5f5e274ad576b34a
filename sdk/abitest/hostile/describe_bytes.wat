;; describe writes bytes that are not UTF-8
(func (export "describe") (result i32) (call $putc (i32.const 255)) (call $putc (i32.const 254)) (call $flush) (i32.const 0))
(func (export "run") (result i32) (call $true) (i32.const 0))
