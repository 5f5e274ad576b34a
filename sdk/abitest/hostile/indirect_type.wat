;; calls a function as one of another type
(table 1 funcref)
(elem (i32.const 0) $f)
(func $f (param i64))
(func (export "run") (result i32) (call_indirect (result i32) (i32.const 0)))
