;; describe has a command with a shell line
(func (export "describe") (result i32) (say '{"name":"a","version":"1","abi":1,"steps":[{"type":"s","summary":"s","fields":{"type":"object","properties":{"line":{"type":"string","x-sentinel":"shell"}}},"output":{},"provides":{"as":"command","name":"a/s"}}],"permissions":[{"use":"provide","names":["command"],"reason":"r"}]}') (call $flush) (i32.const 0))
(func (export "run") (result i32) (call $true) (i32.const 0))
