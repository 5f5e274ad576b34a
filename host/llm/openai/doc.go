// Package openai is a client of the chat completions protocol of OpenAI, Ollama, vLLM,
// llama.cpp and others, for host/llm.
//
// It makes each request once: the engine retries and records every attempt. All
// configuration comes from [Options], and a key never follows a redirect.
package openai
