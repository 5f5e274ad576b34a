package abitest

import "github.com/sentinel-runtime/sentinel/sdk/abi"

// A callCase is one host call of the step type kit_call.
type callCase struct {
	clause   string
	name     string // of the wrapper in kit_call
	args     string // JSON
	function string
	request  string // the request that the host must get; default args
	answer   string // the value of "ok"
}

// callCases have, for every host function, each key of its clause at least once in the
// request and in the answer, and the smallest request and answer.
var callCases = []callCase{
	{clause: "A6.3", name: "command", function: abi.FuncCommand, args: `{"command":"kit/do","params":{"path":"a b.txt","n":3,"deep":{"list":[1,null,"ü"]}}}`, answer: `{"done":true,"lines":["a","b"],"n":1.5}`},
	{clause: "A6.3", name: "command", function: abi.FuncCommand, args: `{"command":"kit/do"}`, answer: `null`},
	{clause: "A6.3", name: "command", function: abi.FuncCommand, args: `{"command":"kit/do"}`, answer: `[]`},
	{clause: "A6.3", name: "command", function: abi.FuncCommand, args: `{"command":"kit/do"}`, answer: `"a text"`},
	{clause: "A6.3", name: "command", function: abi.FuncCommand, args: `{"command":"code/read","params":{"path":"x"},"by":"model","tools":["code/*","kit/do"]}`, answer: `{"text":"x"}`},

	{clause: "A6.4", name: "llm", function: abi.FuncLLM,
		args: `{"append":[{"role":"user","content":"héllo \"you\""}],"system":"be brief","context":true,"model":"kit/large","temperature":0.5,"maxTokens":100,"tools":["code/*"],"schema":{"type":"object"}}`,
		answer: `{"conversation":"c1","text":"{\"a\":1}","json":{"a":1},"problems":["a is too small","b is missing"],"toolCalls":[{"id":"t1","name":"code/read","arguments":{"path":"x"}},{"id":"t2","name":"code/list","arguments":{}}],
			"finish":"tools","usage":{"inputTokens":12,"outputTokens":34,"costUsd":0.0125,"calls":2},"provider":"kit","model":"large"}`},
	{clause: "A6.4", name: "llm", function: abi.FuncLLM,
		args:   `{"conversation":"c1","append":[{"role":"tool","content":"no such file","toolCallId":"t1","name":"code/read","isError":true},{"role":"user","content":"go on"}],"temperature":0}`,
		answer: `{"conversation":"c1","text":"done","toolCalls":[],"finish":"stop","usage":{"inputTokens":0,"outputTokens":0,"costUsd":0},"provider":"kit","model":"small"}`},

	{clause: "A6.4", name: "llm", function: abi.FuncLLM,
		args: `{"conversation":"c1","append":[{"role":"user","content":"go on"}],"replace":[{"from":0,"to":1,"with":[{"role":"user","content":"the task"}]},` +
			`{"from":2,"to":3,"with":[{"role":"tool","content":"left out","toolCallId":"t1","name":"code/read"}]},{"from":4,"to":6,"with":[]}]}`,
		answer: `{"conversation":"c1","text":"done","toolCalls":[],"finish":"stop","inputLimit":6144,"usage":{"inputTokens":9,"outputTokens":1,"costUsd":0},"provider":"kit","model":"small"}`},
	{clause: "A6.4", name: "llm", function: abi.FuncLLM,
		args:   `{"conversation":"c1","append":[{"role":"user","content":"sum up"}],"replace":[{"from":3,"to":3,"with":[{"role":"user","content":"a note"}]}],"aside":true}`,
		answer: `{"conversation":"c1","text":"a summary","toolCalls":[],"finish":"stop","usage":{"inputTokens":9,"outputTokens":1,"costUsd":0},"provider":"kit","model":"small"}`},

	{clause: "A6.5", name: "watch", function: abi.FuncWatch, args: `{"executionId":"e1","rules":[{"pattern":"^E","classification":"error","action":"stop"}],"until":"match"}`,
		answer: `{"executionId":"e1","lines":[{"text":"E: no","classification":"error","lineNumber":3,"stream":"stderr","timestamp":"2026-03-01T12:00:00Z"}],"text":"E: no","finished":true,"exitCode":2,"dropped":5,"cursor":3}`},
	{clause: "A6.5", name: "watch", function: abi.FuncWatch, args: `{"executionId":"e1"}`, answer: `{"executionId":"e1","lines":[],"text":"","finished":false,"dropped":0,"cursor":0}`},

	{clause: "A6.6", name: "eval", function: abi.FuncEval, args: `{"expression":"x > 1 && \"y\"","vars":{"x":2}}`, answer: `{"value":"y","truthy":true}`},
	{clause: "A6.6", name: "eval", function: abi.FuncEval, args: `{"expression":"$x"}`, answer: `{"value":null,"truthy":false}`},
	{clause: "A6.6", name: "eval", function: abi.FuncEval, args: `{"expression":"$x"}`, answer: `{"value":{"a":[1]},"truthy":true}`},

	{clause: "A6.7", name: "var_get", function: abi.FuncVar, args: `{"name":"build.lines[0]"}`, request: `{"get":"build.lines[0]"}`, answer: `{"value":["a",1],"found":true}`},
	{clause: "A6.7", name: "var_get", function: abi.FuncVar, args: `{"name":"none"}`, request: `{"get":"none"}`, answer: `{"value":null,"found":false}`},
	{clause: "A6.7", name: "var_set", function: abi.FuncVar, args: `{"values":{"x":{"a":[1,"ü"]}}}`, request: `{"set":{"x":{"a":[1,"ü"]}}}`, answer: `{}`},
	{clause: "A6.7", name: "var_set", function: abi.FuncVar, args: `{"values":{"x":null}}`, request: `{"set":{"x":null}}`, answer: `{}`},

	{clause: "A6.9", name: "spawn", function: abi.FuncSpawn, args: `{"sentinel":"deploy","inputs":{"tag":"v1"}}`, answer: `{"run":"r1","sentinel":"deploy"}`},
	{clause: "A6.9", name: "spawn", function: abi.FuncSpawn, args: `{"field":"child"}`, answer: `{"run":"r2","sentinel":"kit_child"}`},

	{clause: "A6.10", name: "emit", function: abi.FuncEmit, args: `{"event":"kit:done","data":{"n":[1,2]}}`, answer: `{"id":"e1"}`},
	{clause: "A6.10", name: "emit", function: abi.FuncEmit, args: `{"event":"kit:done"}`, answer: `{"id":"e2"}`},

	{clause: "A6.11", name: "wait", function: abi.FuncWait, args: `{"durationMs":1500}`, answer: `{"timedOut":false}`},
	{clause: "A6.11", name: "wait", function: abi.FuncWait, args: `{"until":"2026-03-01T13:00:00Z"}`, answer: `{"timedOut":false}`},
	{clause: "A6.11", name: "wait", function: abi.FuncWait, args: `{"event":"git:*","timeoutMs":5000}`, answer: `{"timedOut":false,"event":{"id":"e1","name":"git:push","data":{"ref":"main"}}}`},
	{clause: "A6.11", name: "wait", function: abi.FuncWait, args: `{"run":"r1"}`,
		answer: `{"timedOut":false,"result":{"run":"r1","success":false,"status":"failed","iterations":2,"output":[1],"variables":{"x":1},"error":{"code":"timeout","message":"too late"}}}`},
	{clause: "A6.11", name: "wait", function: abi.FuncWait, args: `{"decision":{"prompt":"Deploy?","approvers":["ann","bob"]},"timeoutMs":60000}`,
		answer: `{"timedOut":false,"decision":{"verdict":"reject","by":"ann","at":"2026-03-01T12:00:05Z","comment":"not now"}}`},
	{clause: "A6.11", name: "wait", function: abi.FuncWait, args: `{"decision":{"prompt":"Deploy?"}}`, answer: `{"timedOut":false,"decision":{"verdict":"approve","by":"bob","at":"2026-03-01T12:00:05Z"}}`},
	{clause: "A6.11", name: "wait", function: abi.FuncWait, args: `{"decision":{"prompt":"Write?","callKind":"code/write"}}`, answer: `{"timedOut":false,"decision":{"verdict":"approve","by":"bob","at":"2026-03-01T12:00:05Z"}}`},

	{clause: "A6.12", name: "checkpoint", function: abi.FuncCheckpoint, args: `{"state":{"next":3,"seen":["a",null]}}`, answer: `{}`},

	{clause: "A6.13", name: "http", function: abi.FuncHTTP,
		args:   `{"method":"POST","url":"https://api.example.com/v1?q=ü","headers":{"Authorization":"Bearer {{secret.TOKEN}}","Content-Type":"application/json"},"body":"{\"a\":\"ü\"}","timeoutMs":2000}`,
		answer: `{"status":201,"headers":{"content-type":"application/json","location":"/v1/7"},"body":"{\"id\":7}","truncated":false}`},
	{clause: "A6.13", name: "http", function: abi.FuncHTTP, args: `{"url":"https://api.example.com/"}`, answer: `{"status":404,"headers":{},"body":"AP8=","encoding":"base64","truncated":true}`},
	{clause: "A6.13", name: "http", function: abi.FuncHTTP, args: `{"method":"PUT","url":"https://api.example.com/","body":"{{secret.TOKEN}}","bodySecrets":true}`,
		answer: `{"status":204,"headers":{},"body":"","truncated":false}`},

	{clause: "A6.15", name: "now", function: abi.FuncNow, args: `{}`, answer: `{"unixMs":1772366400123,"iso":"2026-03-01T12:00:00.123Z"}`},

	{clause: "A6.16", name: "file", function: abi.FuncFile, args: `{"folder":"data","op":"read","path":"a/b ü.txt","offset":10,"length":20}`, answer: `{"text":"héllo","size":1000,"truncated":true}`},
	{clause: "A6.16", name: "file", function: abi.FuncFile, args: `{"folder":"data","op":"read","path":"b.bin"}`, answer: `{"text":"AP8=","encoding":"base64","size":2,"truncated":false}`},
	{clause: "A6.16", name: "file", function: abi.FuncFile, args: `{"folder":"data","op":"write","path":"c.txt","text":"ü\u0000\n"}`, answer: `{"size":4}`},
	{clause: "A6.16", name: "file", function: abi.FuncFile, args: `{"folder":"data","op":"write","path":"c.bin","text":"AP8=","encoding":"base64"}`, answer: `{"size":2}`},
	{clause: "A6.16", name: "file", function: abi.FuncFile, args: `{"folder":"data","op":"list","path":"a"}`,
		answer: `{"entries":[{"name":"b","dir":true,"size":0,"modified":"2026-03-01T12:00:00Z"},{"name":"c.txt","dir":false,"size":4,"modified":"2026-03-01T12:00:00Z"}],"truncated":true}`},
	{clause: "A6.16", name: "file", function: abi.FuncFile, args: `{"folder":"data","op":"list","offset":1000}`, answer: `{"entries":[],"truncated":false}`},
	{clause: "A6.16", name: "file", function: abi.FuncFile, args: `{"folder":"data","op":"stat","path":"c.txt"}`, answer: `{"exists":true,"dir":false,"size":4,"modified":"2026-03-01T12:00:00Z"}`},
	{clause: "A6.16", name: "file", function: abi.FuncFile, args: `{"folder":"data","op":"stat","path":"none"}`, answer: `{"exists":false}`},
	{clause: "A6.16", name: "file", function: abi.FuncFile, args: `{"folder":"data","op":"remove","path":"c.txt"}`, answer: `{}`},
}

// defaults are the values that ABI.md specifies for missing keys of a request, so that a
// wrapper may also write them. Other zero values have another meaning: a temperature of 0
// is not the default of the model, and an empty list of tools is not all tools.
func defaults(key string, value any) bool {
	switch key {
	case "by":
		return value == "step"
	case "method":
		return value == "GET"
	case "until":
		return value == "finished"
	case "context", "sources", "failFast", "isError", "bodySecrets", "aside", "drain", "isolated":
		return value == false
	case "offset", "concurrency", "total", "callKind":
		return empty(value)
	case "path":
		return value == ""
	}
	return false
}

// optionalKey reports whether a guest may return a key that is not in the answer: one
// with an empty value, or calls, whose default is 1.
func optionalKey(key string, value any) bool { return empty(value) || key == "calls" }
