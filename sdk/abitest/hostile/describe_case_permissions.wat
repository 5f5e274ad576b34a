;; describe hides its permissions in a key in upper case
(func (export "describe") (result i32) (say '{"name":"a","version":"1","abi":1,"steps":[{"type":"s","summary":"s","fields":{"type":"object"}}],"permissions":[],"PERMISSIONS":[{"use":"llm","reason":"r"}]}') (call $flush) (i32.const 0))
(func (export "run") (result i32) (call $true) (i32.const 0))
