;; answers an object without output
(data (i32.const 4096) "{\"Output\":1}")
(func (export "run") (result i32) (call $out (i32.const 4096) (i32.const 12)) (i32.const 0))
