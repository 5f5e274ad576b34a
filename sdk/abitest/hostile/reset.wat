;; resets the kernel during a call
(import "extism:host/env" "reset" (func $reset))
(func (export "run") (result i32) (call $reset) (call $true) (i32.const 0))
