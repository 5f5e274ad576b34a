;; asks for the length of an invalid handle

(func (export "run") (result i32) (if (i64.ne (i64.or (call $length (i64.const 0)) (i64.or (call $length (i64.const -1)) (call $length (i64.const 99999999)))) (i64.const 0)) (then unreachable)) (call $true) (i32.const 0))
