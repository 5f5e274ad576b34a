;; asks for 4 GiB at once and continues without

(func (export "run") (result i32) (if (i32.ne (memory.grow (i32.const 65535)) (i32.const -1)) (then unreachable)) (call $true) (i32.const 0))
