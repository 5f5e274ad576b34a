;; has the optional validate
(data (i32.const 4096) "{\"problems\":[{\"field\":\"url\",\"message\":\"is empty\",\"hint\":\"set it\"}]}")
(func (export "validate") (result i32) (call $out (i32.const 4096) (i32.const 67)) (i32.const 0))
(func (export "run") (result i32) (call $true) (i32.const 0))
