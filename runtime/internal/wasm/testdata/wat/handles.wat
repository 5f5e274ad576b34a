;; handles; changes the first value in its block, and passes it on with handles that it made up
(import "extism:host/user" "sentinel_var" (func $var (param i64) (result i64)))
(data (i32.const 4096) "{\"set\":{\"v\":@s64,\"w\":{\"a\":[@o64,1]}}}{\"set\":{\"v\":@s7}}{\"output\":[@s64,\"@s64\"]}")
(func (export "run") (result i32)
  (call $store (i64.const 64) (i32.const 88))
  (drop (call $var (call $text (i32.const 4096) (i32.const 37))))
  (drop (call $var (call $text (i32.const 4133) (i32.const 17))))
  (call $out (i32.const 4150) (i32.const 24))
  (i32.const 0))
