;; allocates blocks of a byte forever

(func (export "run") (result i32) (loop $again (br_if $again (i64.ne (call $alloc (i64.const 1)) (i64.const 0)))) unreachable)
