;; fills its memory again and again

(func (export "run") (result i32) (loop $again (memory.fill (i32.const 0) (i32.const 1) (i32.const 65536)) (br $again)) (i32.const 0))
