;; answers words
(data (i32.const 4096) "all went well")
(func (export "run") (result i32) (call $out (i32.const 4096) (i32.const 13)) (i32.const 0))
