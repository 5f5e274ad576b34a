;; The two functions that the rewrite adds to a module; bulk.go explains why.
;; Their instructions refer to memory 0 and their own parameters only, so that their
;; bodies are valid in any module. After a change: make hostile.
;;
;; Sizes of at most 4 KiB, and ranges out of bounds, are passed to the instruction
;; unchanged: the first take little time, the second trap before they write.
(module
  (memory 1)

  ;; memory.fill in chunks of 1 MiB. The head of the loop is the interruption point.
  (func (param $to i32) (param $value i32) (param $size i32)
    (block $rest
      (br_if $rest (i32.le_u (local.get $size) (i32.const 4096)))
      (br_if $rest (i64.gt_u
        (i64.add (i64.extend_i32_u (local.get $to)) (i64.extend_i32_u (local.get $size)))
        (i64.shl (i64.extend_i32_u (memory.size)) (i64.const 16))))
      (loop $next
        (br_if $rest (i32.le_u (local.get $size) (i32.const 1048576)))
        (memory.fill (local.get $to) (local.get $value) (i32.const 1048576))
        (local.set $to (i32.add (local.get $to) (i32.const 1048576)))
        (local.set $size (i32.sub (local.get $size) (i32.const 1048576)))
        (br $next)))
    (memory.fill (local.get $to) (local.get $value) (local.get $size)))

  ;; memory.copy in chunks of 1 MiB. A copy to a higher address takes the last chunk
  ;; first, so that no byte is overwritten before it is read.
  (func (param $to i32) (param $from i32) (param $size i32)
    (block $rest
      (br_if $rest (i32.le_u (local.get $size) (i32.const 4096)))
      (br_if $rest (i64.gt_u
        (i64.add (i64.extend_i32_u (local.get $to)) (i64.extend_i32_u (local.get $size)))
        (i64.shl (i64.extend_i32_u (memory.size)) (i64.const 16))))
      (br_if $rest (i64.gt_u
        (i64.add (i64.extend_i32_u (local.get $from)) (i64.extend_i32_u (local.get $size)))
        (i64.shl (i64.extend_i32_u (memory.size)) (i64.const 16))))
      (if (i32.gt_u (local.get $to) (local.get $from))
        (then (loop $down
          (br_if $rest (i32.le_u (local.get $size) (i32.const 1048576)))
          (local.set $size (i32.sub (local.get $size) (i32.const 1048576)))
          (memory.copy
            (i32.add (local.get $to) (local.get $size))
            (i32.add (local.get $from) (local.get $size))
            (i32.const 1048576))
          (br $down))))
      (loop $up
        (br_if $rest (i32.le_u (local.get $size) (i32.const 1048576)))
        (memory.copy (local.get $to) (local.get $from) (i32.const 1048576))
        (local.set $to (i32.add (local.get $to) (i32.const 1048576)))
        (local.set $from (i32.add (local.get $from) (i32.const 1048576)))
        (local.set $size (i32.sub (local.get $size) (i32.const 1048576)))
        (br $up)))
    (memory.copy (local.get $to) (local.get $from) (local.get $size))))
