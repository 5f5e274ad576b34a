;; describe has an output classifier that takes no lines
(func (export "describe") (result i32) (say '{"name":"a","version":"1","abi":1,"steps":[{"type":"s","summary":"s","fields":{"type":"object","properties":{"text":{"type":"string"}}},"provides":{"as":"output_classifier"}}],"permissions":[{"use":"provide","names":["output_classifier"],"reason":"r"}]}') (call $flush) (i32.const 0))
(func (export "run") (result i32) (call $true) (i32.const 0))
