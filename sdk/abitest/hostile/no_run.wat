;; bare; has no run
(module (func (export "describe") (result i32) (i32.const 0)))
