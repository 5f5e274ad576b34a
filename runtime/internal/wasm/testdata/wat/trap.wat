;; stateless; traps
(func (export "run") (result i32) unreachable)
