;; makes a tree of 2^62 calls through a table
(type $t (func (param i32) (result i32)))
(table 1 funcref)
(elem (i32.const 0) $grow)
(func $grow (type $t) (if (result i32) (i32.eqz (local.get 0)) (then (i32.const 1)) (else
  (i32.add (call_indirect (type $t) (i32.sub (local.get 0) (i32.const 1)) (i32.const 0)) (call_indirect (type $t) (i32.sub (local.get 0) (i32.const 1)) (i32.const 0))))))
(func (export "run") (result i32) (drop (call $grow (i32.const 62))) (i32.const 0))
