;; stateless; declares that it is stateless and counts its calls
(global $n (mut i64) (i64.const 0))
(func (export "run") (result i32) (global.set $n (i64.add (global.get $n) (i64.const 1))) (say '{"output":') (call $putn (global.get $n)) (say '}') (call $flush) (i32.const 0))
