;; reads outside its memory

(func (export "run") (result i32) (i32.load (i32.const -4)))
