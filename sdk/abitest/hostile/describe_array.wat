;; describe writes a list
(func (export "describe") (result i32) (say '[]') (call $flush) (i32.const 0))
(func (export "run") (result i32) (call $true) (i32.const 0))
