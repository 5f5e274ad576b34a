;; imports a memory of the kernel
(import "extism:host/env" "memory" (memory 1))
(func (export "run") (result i32) (call $true) (i32.const 0))
