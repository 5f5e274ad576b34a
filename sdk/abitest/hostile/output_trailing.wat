;; writes more after its output

(func (export "run") (result i32) (say '{"output":1}{"output":2}') (call $flush) (i32.const 0))
