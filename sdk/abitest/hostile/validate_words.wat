;; validate answers with plain text
(func (export "validate") (result i32) (say 'all is well') (call $flush) (i32.const 0))
(func (export "run") (result i32) (call $true) (i32.const 0))
