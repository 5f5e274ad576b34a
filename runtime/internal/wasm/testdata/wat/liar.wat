;; stateless (a lie); counts its calls in a global and in memory and answers {"output":NM}
(global $n (mut i32) (i32.const 0))
(data (i32.const 4096) "{\"output\":00}")
(func (export "run") (result i32)
  (global.set $n (i32.add (global.get $n) (i32.const 1)))
  (i32.store8 (i32.const 4106) (i32.add (i32.const 48) (global.get $n)))
  (i32.store8 (i32.const 4107) (i32.add (i32.load8_u (i32.const 4107)) (i32.const 1)))
  (call $out (i32.const 4096) (i32.const 13)) (i32.const 0))
