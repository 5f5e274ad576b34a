;; bare flags=--enable-memory64; has a memory of 64 bits
(module (memory i64 1) (func (export "describe") (result i32) (i32.const 0)) (func (export "run") (result i32) (i32.const 0)))
