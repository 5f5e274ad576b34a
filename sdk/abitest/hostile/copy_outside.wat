;; copies from outside its memory

(func (export "run") (result i32) (memory.copy (i32.const 0) (i32.const 65535) (i32.const 2)) (i32.const 0))
