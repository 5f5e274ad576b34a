;; sends its input to sentinel_eval, frees both texts, and outputs the answer
(host eval)
(func (export "run") (result i32) (local $i i64) (local $h i64)
  (block $end (loop $next
    (br_if $end (i64.ge_u (local.get $i) (call $input_length)))
    (call $putc (call $input_load (local.get $i)))
    (local.set $i (i64.add (local.get $i) (i64.const 1)))
    (br $next)))
  (local.set $h (call $text))
  (local.set $i (call $eval (local.get $h)))
  (call $free (local.get $h))
  (say '{"output":') (call $puth (local.get $i)) (say '}')
  (call $free (local.get $i))
  (call $flush) (i32.const 0))
