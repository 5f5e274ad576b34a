;; uses vectors, which are WebAssembly 2.0
(func (export "run") (result i32)
  (if (i32.ne (i32x4.extract_lane 2 (i32x4.add (v128.const i32x4 1 2 3 4) (v128.const i32x4 1 2 3 4))) (i32.const 6)) (then unreachable))
  (call $true) (i32.const 0))
