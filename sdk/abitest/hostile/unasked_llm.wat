;; imports sentinel_llm without asking for it
(host llm)
(func (export "run") (result i32) (drop (call $llm (i64.const 0))) (call $true) (i32.const 0))
