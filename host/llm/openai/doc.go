// Package openai speaks the chat completions protocol of OpenAI, Ollama, vLLM,
// llama.cpp and others to a model, for host/llm.
//
// It is the only package that imports the OpenAI SDK. The SDK's own retries,
// its reading of the environment and its redirects are off: the engine retries
// and journals every try, configuration comes from one place, and a key never
// follows a redirect.
package openai
