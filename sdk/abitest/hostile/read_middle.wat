;; reads far beyond its blocks

(func (export "run") (result i32) (drop (call $load (i64.const 0x7fffffffffffffff))) (call $true) (i32.const 0))
