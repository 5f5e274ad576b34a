;; counts its calls in a global and in memory
(global $n (mut i64) (i64.const 0))
(func (export "run") (result i32) (global.set $n (i64.add (global.get $n) (i64.const 1))) (i64.store (i32.const 8) (i64.add (i64.load (i32.const 8)) (i64.const 1))) (say '{"output":') (call $putn (global.get $n)) (call $putn (i64.load (i32.const 8))) (say '}') (call $flush) (i32.const 0))
