;; stateless; writes one word into call memory: its input is address and value, 8 bytes each
(func (export "run") (result i32) (local $n i32)
  (local.set $n (call $input (i32.const 4096)))
  (call $true)
  (if (i32.eq (local.get $n) (i32.const 16)) (then
    (call $store64 (i64.load (i32.const 4096)) (i64.load (i32.const 4104)))))
  (i32.const 0))
