;; flags=--enable-threads; has a shared memory
(memory (export "memory") 1 2 shared)
(func (export "run") (result i32) (call $true) (i32.const 0))
