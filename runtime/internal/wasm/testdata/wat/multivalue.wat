;; calls functions with several results, with and without parameters
(func $three (result i32 i64 f64) (i32.const 1) (i64.const 2) (f64.const 3))
(func $swap (param i32 i32) (result i32 i32) (br 0 (local.get 1) (local.get 0)))
(func (export "run") (result i32)
  (call $swap (i32.const 1) (i32.const 2))
  (drop) (if (i32.ne (i32.const 2)) (then unreachable))
  (call $three) (drop) (drop) (drop)
  (call $true) (i32.const 0))
