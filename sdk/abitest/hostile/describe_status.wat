;; describe returns 1 and sets no error
(func (export "describe") (result i32) (i32.const 1))
(func (export "run") (result i32) (call $true) (i32.const 0))
