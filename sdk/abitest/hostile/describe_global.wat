;; bare; exports a global as describe
(module (global (export "describe") i32 (i32.const 0)) (func (export "run") (result i32) (i32.const 0)))
