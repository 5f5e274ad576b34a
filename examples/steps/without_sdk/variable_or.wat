;; variable_or: a step type in WebAssembly text, without an SDK. It outputs the
;; value of a variable, or the field "otherwise" if nothing has set the variable:
;;
;;   {"type": "variable_or", "variable": "build.status", "otherwise": "unknown", "outputTo": "status"}
;;
;; Clauses (A1.1) are those of sdk/ABI.md. Texts live in the call memory, outside
;; the module's own memory, and are read there byte by byte: an i64 is the address
;; of a byte, and the address of a block's first byte is the block's handle (A1.7).
(module
  (import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
  (import "extism:host/env" "load_u8" (func $load (param i64) (result i32)))
  (import "extism:host/env" "store_u8" (func $store (param i64 i32)))
  (import "extism:host/env" "input_offset" (func $input (result i64)))
  (import "extism:host/env" "output_set" (func $output_set (param i64 i64)))
  (import "extism:host/env" "error_set" (func $error_set (param i64)))
  (import "extism:host/user" "sentinel_var" (func $sentinel_var (param i64) (result i64)))

  ;; The module's own memory holds constants only.
  (memory 1)
  (data (i32.const 0) "step fields variable otherwise ok error found value null")
  (data (i32.const 64) "{\"get\":")
  (data (i32.const 80) "{\"output\":")
  (data (i32.const 96) "{\"code\":\"bad_fields\",\"message\":\"variable is missing\",\"field\":\"variable\"}")
  (data (i32.const 256) "{\"name\":\"variable_or\",\"version\":\"1.0.0\",\"abi\":1,\"steps\":[{\"type\":\"variable_or\",\"summary\":\"Outputs a variable, or another value if it is not set.\",\"readOnly\":true,\"fields\":{\"type\":\"object\",\"properties\":{\"variable\":{\"type\":\"string\",\"description\":\"name and path, build.status\"},\"otherwise\":{\"description\":\"output if nothing has set the variable\",\"default\":null}},\"required\":[\"variable\"],\"additionalProperties\":false}}]}")
  (global $manifest_size i64 (i64.const 416))

  ;; put copies $len constant bytes to address $to and returns the address behind.
  (func $put (param $to i64) (param $from i32) (param $len i32) (result i64)
    (loop $next
      (if (local.get $len) (then
        (call $store (local.get $to) (i32.load8_u (local.get $from)))
        (local.set $to (i64.add (local.get $to) (i64.const 1)))
        (local.set $from (i32.add (local.get $from) (i32.const 1)))
        (local.set $len (i32.sub (local.get $len) (i32.const 1)))
        (br $next))))
    (local.get $to))

  ;; copy copies the bytes from $from up to $end to $to and returns the address behind.
  (func $copy (param $to i64) (param $from i64) (param $end i64) (result i64)
    (loop $next
      (if (i64.lt_u (local.get $from) (local.get $end)) (then
        (call $store (local.get $to) (call $load (local.get $from)))
        (local.set $to (i64.add (local.get $to) (i64.const 1)))
        (local.set $from (i64.add (local.get $from) (i64.const 1)))
        (br $next))))
    (local.get $to))

  ;; behind returns the address behind the string that begins at $p.
  (func $behind (param $p i64) (result i64) (local $c i32)
    (loop $next
      (local.set $p (i64.add (local.get $p) (i64.const 1)))
      (local.set $c (call $load (local.get $p)))
      (if (i32.eq (local.get $c) (i32.const 92)) (then ;; a backslash: skip what it escapes
        (local.set $p (i64.add (local.get $p) (i64.const 1)))
        (br $next)))
      (br_if $next (i32.ne (local.get $c) (i32.const 34))))
    (i64.add (local.get $p) (i64.const 1)))

  ;; end returns the address of the comma or bracket that ends the value at $p.
  (func $end (param $p i64) (result i64) (local $c i32) (local $depth i32)
    (loop $next
      (local.set $c (call $load (local.get $p)))
      (if (i32.eq (local.get $c) (i32.const 34)) (then
        (local.set $p (call $behind (local.get $p)))
        (br $next)))
      (if (i32.or (i32.eq (local.get $c) (i32.const 91)) (i32.eq (local.get $c) (i32.const 123))) ;; [ {
        (then (local.set $depth (i32.add (local.get $depth) (i32.const 1)))))
      (if (i32.or (i32.eq (local.get $c) (i32.const 93)) (i32.eq (local.get $c) (i32.const 125))) (then ;; ] }
        (if (i32.eqz (local.get $depth)) (then (return (local.get $p))))
        (local.set $depth (i32.sub (local.get $depth) (i32.const 1)))))
      (if (i32.and (i32.eq (local.get $c) (i32.const 44)) (i32.eqz (local.get $depth))) ;; ,
        (then (return (local.get $p))))
      (local.set $p (i64.add (local.get $p) (i64.const 1)))
      (br $next))
    (unreachable))

  ;; space returns the address of the first byte behind $p that is no white space.
  (func $space (param $p i64) (result i64)
    (loop $next
      (local.set $p (i64.add (local.get $p) (i64.const 1)))
      (br_if $next (i32.le_u (call $load (local.get $p)) (i32.const 32))))
    (local.get $p))

  ;; is reports whether the string at $p is the $len constant bytes at $key.
  (func $is (param $p i64) (param $key i32) (param $len i32) (result i32)
    (loop $next
      (local.set $p (i64.add (local.get $p) (i64.const 1)))
      (if (local.get $len) (then
        (if (i32.ne (call $load (local.get $p)) (i32.load8_u (local.get $key))) (then (return (i32.const 0))))
        (local.set $key (i32.add (local.get $key) (i32.const 1)))
        (local.set $len (i32.sub (local.get $len) (i32.const 1)))
        (br $next))))
    (i32.eq (call $load (local.get $p)) (i32.const 34)))

  ;; member returns the address of a member's value in the object at $p, 0 if it
  ;; is not there. The key is $len constant bytes at $key.
  (func $member (param $p i64) (param $key i32) (param $len i32) (result i64) (local $found i32)
    (if (i64.eqz (local.get $p)) (then (return (i64.const 0))))
    (loop $next ;; $p is at the bracket or comma before a key
      (local.set $p (call $space (local.get $p)))
      (if (i32.ne (call $load (local.get $p)) (i32.const 34)) (then (return (i64.const 0)))) ;; no members
      (local.set $found (call $is (local.get $p) (local.get $key) (local.get $len)))
      (local.set $p (i64.sub (call $behind (local.get $p)) (i64.const 1)))
      (local.set $p (call $space (call $space (local.get $p)))) ;; over the colon, to the value
      (if (local.get $found) (then (return (local.get $p))))
      (local.set $p (call $end (local.get $p)))
      (br_if $next (i32.eq (call $load (local.get $p)) (i32.const 44))))
    (i64.const 0))

  ;; wrap makes a text of $len constant bytes, the value at $p, and a "}". The host
  ;; takes the length of a request from its block, so the block has just that size.
  (func $wrap (param $from i32) (param $len i32) (param $p i64) (result i64) (local $end i64) (local $text i64)
    (local.set $end (call $end (local.get $p)))
    (local.set $text (call $alloc (i64.add (i64.add (i64.sub (local.get $end) (local.get $p)) (i64.extend_i32_u (local.get $len))) (i64.const 1))))
    (call $store (call $copy (call $put (local.get $text) (local.get $from) (local.get $len)) (local.get $p) (local.get $end)) (i32.const 125))
    (local.get $text))

  ;; fail sets the error object and returns the status for it (A1.4).
  (func $fail (param $text i64) (result i32)
    (call $error_set (local.get $text))
    (i32.const 1))

  ;; describe writes the manifest (A1.1).
  (func (export "describe") (result i32) (local $text i64)
    (local.set $text (call $alloc (global.get $manifest_size)))
    (drop (call $put (local.get $text) (i32.const 256) (i32.wrap_i64 (global.get $manifest_size))))
    (call $output_set (local.get $text) (global.get $manifest_size))
    (i32.const 0))

  ;; run reads the fields (A3), asks the host for the variable (A6.7) and writes
  ;; the output (A4).
  (func (export "run") (result i32) (local $fields i64) (local $name i64) (local $answer i64) (local $ok i64) (local $value i64) (local $text i64)
    (local.set $fields (call $member (call $member (call $input) (i32.const 0) (i32.const 4)) (i32.const 5) (i32.const 6)))
    (local.set $name (call $member (local.get $fields) (i32.const 12) (i32.const 8)))
    (if (i64.eqz (local.get $name)) (then
      (local.set $text (call $alloc (i64.const 72)))
      (drop (call $put (local.get $text) (i32.const 96) (i32.const 72)))
      (return (call $fail (local.get $text)))))
    (local.set $answer (call $sentinel_var (call $wrap (i32.const 64) (i32.const 7) (local.get $name))))
    (local.set $ok (call $member (local.get $answer) (i32.const 31) (i32.const 2)))
    (if (i64.eqz (local.get $ok)) (then ;; pass the error object on
      (local.set $value (call $member (local.get $answer) (i32.const 34) (i32.const 5)))
      (local.set $text (call $alloc (i64.sub (call $end (local.get $value)) (local.get $value))))
      (drop (call $copy (local.get $text) (local.get $value) (call $end (local.get $value))))
      (return (call $fail (local.get $text)))))
    (local.set $value (call $member (local.get $fields) (i32.const 21) (i32.const 9)))
    (if (i32.eq (call $load (call $member (local.get $ok) (i32.const 40) (i32.const 5))) (i32.const 116)) ;; found: t of true
      (then (local.set $value (call $member (local.get $ok) (i32.const 46) (i32.const 5)))))
    (if (i64.eqz (local.get $value)) (then ;; no otherwise: the text null, and a comma to end it
      (local.set $value (call $alloc (i64.const 5)))
      (call $store (call $put (local.get $value) (i32.const 52) (i32.const 4)) (i32.const 44))))
    (local.set $text (call $wrap (i32.const 80) (i32.const 10) (local.get $value)))
    (call $output_set (local.get $text) (i64.add (i64.sub (call $end (local.get $value)) (local.get $value)) (i64.const 11)))
    (i32.const 0)))
