// Package responses is a client of OpenAI's Responses protocol, for host/llm.
//
// It keeps no state at the server: each request has the whole conversation, and the reasoning
// of the model goes back encrypted, as it came. It makes each request once, and all
// configuration comes from the client of the other protocol, see host/llm/openai.
package responses
