;; describe writes a key in capitals after the same one in small letters
(func (export "describe") (result i32) (say '{"name":"a","NAME":"b","version":"1","abi":1,"steps":[{"type":"s","summary":"s","fields":{"type":"object"}}]}') (call $flush) (i32.const 0))
(func (export "run") (result i32) (call $true) (i32.const 0))
