;; grows its memory to the limit, then gives up
(func (export "run") (result i32)
  (loop $again (br_if $again (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))
  unreachable)
