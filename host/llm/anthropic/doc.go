// Package anthropic speaks Anthropic's messages protocol to a model, for
// host/llm.
//
// It is the only package that imports the Anthropic SDK. The SDK's own
// retries, its reading of the environment, its tracing and its redirects are
// off, for the reasons given in host/llm/openai.
package anthropic
