;; describe traps
(func (export "describe") (result i32) unreachable)
(func (export "run") (result i32) (call $true) (i32.const 0))
