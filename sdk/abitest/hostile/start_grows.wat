;; its start section grows the memory to the limit and then gives up
(func $main (loop $again (br_if $again (i32.ne (memory.grow (i32.const 64)) (i32.const -1)))) unreachable)
(start $main)
(func (export "run") (result i32) (i32.const 0))
