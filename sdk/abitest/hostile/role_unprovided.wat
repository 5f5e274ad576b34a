;; describe asks for a role that no step type has
(func (export "describe") (result i32) (say '{"name":"a","version":"1","abi":1,"steps":[{"type":"s","summary":"s","fields":{"type":"object"}}],"permissions":[{"use":"provide","names":["model"],"reason":"r"}]}') (call $flush) (i32.const 0))
(func (export "run") (result i32) (call $true) (i32.const 0))
