;; a tree of 2^62 calls, without one loop
(func $grow (param $depth i32) (result i32)
  (if (result i32) (i32.eqz (local.get $depth)) (then (i32.const 1)) (else
    (i32.add (call $grow (i32.sub (local.get $depth) (i32.const 1)))
             (call $grow (i32.sub (local.get $depth) (i32.const 1)))))))
(func (export "run") (result i32) (drop (call $grow (i32.const 62))) (i32.const 0))
