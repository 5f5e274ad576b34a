;; bare; has no describe
(module (func (export "run") (result i32) (i32.const 0)))
