;; validate traps
(func (export "validate") (result i32) unreachable)
(func (export "run") (result i32) (call $true) (i32.const 0))
