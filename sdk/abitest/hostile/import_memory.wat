;; imports its memory
(import "env" "memory" (memory 1))
(func (export "run") (result i32) (call $true) (i32.const 0))
