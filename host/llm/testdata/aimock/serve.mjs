// Starts aimock on a loopback port with the fixtures that aimock_test.go asks
// for, prints its URL as the only line, and ends when its input ends, so that
// no server outlives the test.
import { LLMock } from "@copilotkit/aimock";

const mock = new LLMock({ port: 0, host: "127.0.0.1", chunkSize: 8, logLevel: "silent", strict: true });

mock.onMessage("say hello", { content: "Hello from a server that was not written here." });
mock.onMessage("count tokens", { content: "counted", usage: { prompt_tokens: 123, completion_tokens: 45, total_tokens: 168 } });
mock.onMessage("answer as json", { content: '{"a": 1}' });
mock.onMessage("stop early", { content: "too short", finishReason: "length" });

// A tool loop: the model asks for a file, then answers with its content.
mock.on({ userMessage: "read the file", hasToolResult: false }, {
  content: "I will look.",
  toolCalls: [{ id: "call_read", name: "code_read", arguments: '{"path":"a.txt"}' }],
});
mock.on({ userMessage: "read the file", hasToolResult: true }, { content: "It says hello." });
mock.onMessage("two tools", {
  toolCalls: [
    { name: "code_read", arguments: '{"path":"a"}' },
    { name: "code_shell_execute", arguments: '{"path":"b"}' },
  ],
});
mock.onMessage("tool in text", { content: 'Sure.\n<tool_call>{"name":"code/read","arguments":{"path":"a.txt"}}</tool_call>' });

mock.onMessage("limit me", { error: { message: "Rate limit reached", type: "rate_limit_error", code: "rate_limit_exceeded" }, status: 429, retryAfter: 17 });
mock.onMessage("be busy", { error: { message: "overloaded", type: "server_error" }, status: 503 });
mock.onMessage("refuse the key", { error: { message: "Incorrect API key provided", type: "invalid_request_error", code: "invalid_api_key" }, status: 401 });
mock.onMessage("too much text", { error: { message: "This model's maximum context length is 8192 tokens.", type: "invalid_request_error", code: "context_length_exceeded" }, status: 400 });
mock.onMessage("cut the stream", { content: "This text is long enough for several chunks of the stream." }, { truncateAfterChunks: 3 });
mock.onMessage("hang up", { content: "This text is long enough for several chunks." }, { latency: 20, disconnectAfterMs: 30 });
mock.onMessage("talk nonsense", { content: "never seen" }, { chaos: { malformedRate: 1 } });
mock.onMessage("drop me", { content: "never seen" }, { chaos: { dropRate: 1 } });
mock.onMessage("slam the door", { content: "never seen" }, { chaos: { disconnectRate: 1 } });
mock.onMessage("speak slowly", { content: "A text that takes far longer than anybody waits. ".repeat(50) }, { latency: 200 });

await mock.start();
console.log(mock.url);
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
