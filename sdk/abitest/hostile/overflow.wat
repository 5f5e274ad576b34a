;; divides the least integer by -1

(func (export "run") (result i32) (i32.div_s (i32.const 0x80000000) (i32.const -1)))
