// Package wire holds what one turn looks like to a model provider: the request
// a client sends, the answer it got and the failure it met, before any of our
// own rules apply.
//
// The clients (host/llm/openai, host/llm/anthropic) translate between these
// values and the protocols, with the HTTP client and the reader of events of this
// package, and decide nothing; choosing, pricing, reading tool
// calls out of text and naming errors is the work of host/llm.
package wire
