// Package ai implements the commands that call language models: ai/generate, and
// ai/should-respond for sentinels that take part in a conversation.
//
// An llm step is the better choice inside a definition: it has tools, and the
// engine reserves its worst price before it starts. A command has no such gate:
// the price is in the usage of its result, for the caller to book, and is known
// only after the money was spent. Both commands are therefore private: a model
// has them only where a step names them in its tools.
package ai
