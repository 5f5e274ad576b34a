;; an element segment lies outside the table
(table 2 funcref)
(elem (i32.const 1) $f $f)
(func $f)
(func (export "run") (result i32) (i32.const 0))
