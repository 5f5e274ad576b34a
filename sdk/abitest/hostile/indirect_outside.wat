;; calls beyond its table
(table 1 funcref)
(func (export "run") (result i32) (call_indirect (result i32) (i32.const -1)))
