;; bare flags=--enable-multi-memory; has two memories
(module (memory 1) (memory 1) (func (export "describe") (result i32) (i32.const 0)) (func (export "run") (result i32) (i32.const 0)))
