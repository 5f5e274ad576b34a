;; fills more than its memory

(func (export "run") (result i32) (memory.fill (i32.const 0) (i32.const 255) (i32.const -1)) (i32.const 0))
