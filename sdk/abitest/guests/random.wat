;; reads two random numbers before a host call and one after, sends the first two as its request and outputs all three
(import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
(host eval)
(global $drawn (mut i64) (i64.const 0))
(func $draw (result i64)
  (if (call $random (i32.const 512) (i32.const 8)) (then unreachable))
  (i64.shr_u (i64.load (i32.const 512)) (i64.const 12)))
;; Random numbers that are read at the start belong to the attempt too.
(func (export "_initialize") (global.set $drawn (call $draw)))
(func (export "run") (result i32) (local $a i64)
  (local.set $a (call $draw))
  (say '{"expression":"') (call $putn (global.get $drawn)) (say ' + ') (call $putn (local.get $a)) (say '"}')
  (drop (call $eval (call $text)))
  (say '{"output":[') (call $putn (global.get $drawn)) (say ',') (call $putn (local.get $a)) (say ',') (call $putn (call $draw)) (say ']}') (call $flush) (i32.const 0))
