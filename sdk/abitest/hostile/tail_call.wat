;; flags=--enable-tail-call; makes a tail call
(func $next (result i32) (return_call $next))
(func (export "run") (result i32) (call $next))
