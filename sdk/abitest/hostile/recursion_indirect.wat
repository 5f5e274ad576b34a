;; overflows the stack by two functions that call each other through a table
(type $t (func (param i64 i64 i64 i64) (result i64)))
(table 2 funcref)
(elem (i32.const 0) $a $b)
(func $a (type $t) (i64.add (local.get 3) (call_indirect (type $t) (local.get 0) (local.get 1) (local.get 2) (local.get 3) (i32.const 1))))
(func $b (type $t) (i64.add (local.get 2) (call_indirect (type $t) (local.get 0) (local.get 1) (local.get 2) (local.get 3) (i32.const 0))))
(func (export "run") (result i32) (drop (call $a (i64.const 1) (i64.const 2) (i64.const 3) (i64.const 4))) (i32.const 0))
