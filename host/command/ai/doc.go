// Package ai implements the commands that call language models: ai/generate, and
// ai/should-respond for sentinels that take part in a conversation.
//
// A turn of a command is reserved and booked on the budget of the calling run, as that
// of an llm step is, and without a run on none; its usage is in the result. An llm step
// is the better choice inside a definition: it has tools and a conversation, and makes a
// turn again that failed for a transient reason. Both commands cost money and are
// therefore private: a model has them only where a step names them in its tools.
package ai
