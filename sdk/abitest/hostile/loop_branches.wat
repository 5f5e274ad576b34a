;; never ends, by a table of branches

(func (export "run") (result i32) (local $i i32) (loop $a (loop $b (local.set $i (i32.xor (local.get $i) (i32.const 1))) (br_table $a $b (local.get $i)))) (i32.const 0))
