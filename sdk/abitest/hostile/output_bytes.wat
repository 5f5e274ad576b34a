;; writes a text that is not UTF-8

(func (export "run") (result i32) (say '{"output":"') (call $putc (i32.const 0xc3)) (call $putc (i32.const 0x28)) (say '"}') (call $flush) (i32.const 0))
