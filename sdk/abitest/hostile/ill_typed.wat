;; flags=--no-check; adds without operands
(func (export "run") (result i32) i32.add)
