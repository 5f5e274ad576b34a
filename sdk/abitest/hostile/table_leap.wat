;; asks for a table of four billion entries
(table $t 1 funcref)
(func (export "run") (result i32) (if (i32.ne (table.grow $t (ref.null func) (i32.const -2)) (i32.const -1)) (then unreachable)) (call $true) (i32.const 0))
