;; its input is a number of pages by which it grows its memory; outputs whether that succeeded
(func (export "run") (result i32)
  (if (i32.eq (memory.grow (i32.wrap_i64 (call $arg))) (i32.const -1)) (then (say '{"output":false}')) (else (say '{"output":true}')))
  (call $flush) (i32.const 0))
