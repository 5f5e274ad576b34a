;; describe writes nothing
(func (export "describe") (result i32) (i32.const 0))
(func (export "run") (result i32) (call $true) (i32.const 0))
