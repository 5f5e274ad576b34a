;; flags=--no-check; exports two functions as run
(func (export "run") (result i32) (call $true) (i32.const 0))
(func $other (export "run") (result i32) unreachable)
