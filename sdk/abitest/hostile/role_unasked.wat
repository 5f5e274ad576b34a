;; describe has a role without asking for it
(func (export "describe") (result i32) (say '{"name":"a","version":"1","abi":1,"steps":[{"type":"s","summary":"s","fields":{"type":"object"},"output":{},"provides":{"as":"command","name":"a/s"}}]}') (call $flush) (i32.const 0))
(func (export "run") (result i32) (call $true) (i32.const 0))
