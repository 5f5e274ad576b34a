// Package anthropic is a client of Anthropic's messages protocol, for host/llm.
//
// It makes each request once, and all configuration comes from [Options], for the
// reasons given in host/llm/openai.
package anthropic
