;; flags=--enable-exceptions; throws an exception
(tag $e)
(func (export "run") (result i32) (try (do (throw $e)) (catch_all)) (call $true) (i32.const 0))
