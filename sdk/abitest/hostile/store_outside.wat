;; writes outside its memory

(func (export "run") (result i32) (i64.store (i32.const 65535) (i64.const -1)) (i32.const 0))
