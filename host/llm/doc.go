// Package llm answers single turns of language models: it chooses a model, says
// what a turn may cost at worst, makes it, and reads the reply.
//
// # What is not here
//
// The tool loop is code of the llm step's plugin, the ledger of budgets and the
// retries are the engine's, and arguments of tool calls are validated and
// coerced by the command registry. So a turn is tried once, never repeated
// after it may have been paid for, and its errors say by code whether another
// try makes sense: unavailable and timeout do, with RetryAfterMs where the
// server asked for a pause; errors marked permanent do not.
//
// One exception: a server that refuses a part of the protocol before it does
// any work (a status 400 that names stream_options, temperature, tools, a limit of the
// reply that is too large, ...; see package providers) is
// asked again without that part, once for each, and the refusal is remembered
// for the model. The report of the turn says so.
//
// # Answers that are no stream
//
// Every turn asks for a stream. A server that answers with a JSON object is read
// as if that were the whole reply, if it is a completion with a finish reason, and
// the report says so: several compatible servers do not know the parameter, and
// asking again would pay twice. Any other JSON object and every HTML page is an
// error marked permanent, with the base URL as hint. An answer has at most 16 MiB
// of text and arguments and 128 tool calls or content blocks; more is the error
// limit, however the server numbers them.
//
// # Protocols
//
// A provider of the kind openai is asked by Chat Completions, api.openai.com by
// Responses: there the reasoning of a model goes back to it, encrypted, and nothing
// is stored. "protocol" of a provider, or of a row of the table of models, decides
// first. What a model said goes back unchanged only to that model, by the protocol that it came by.
//
// # Choosing
//
// A turn's model is "provider/name", a bare name, a capacity, or "auto". Bare names
// are looked up in the table of models. One the table does not have goes to the
// provider of its family (claude-, gpt-, or the name of a configured provider), else
// to the local server. A capacity (tiny, small, medium, large, sota) is what the
// configuration says. "auto" takes the first candidate that fits the turn: those of
// the configuration if it lists any, else a local server (OLLAMA_HOST,
// OPENAI_BASE_URL, providers marked local), else a hosted provider with a key.
// A local server that is configured but does not answer is an error. Going on
// to a hosted model would send the text elsewhere and cost money, unasked.
//
// # Tools
//
// Names of commands have slashes, which providers refuse; each request maps
// them to names they accept, one to one, and the reply maps them back. A model
// without native calls is understood too: see package texttool.
//
// # Prices
//
// prices.json holds list prices, each with the address that it is from and the day, and is only as
// good as that day; configuration overrides it. Local servers cost nothing. Usage is the
// largest of what the server reports; where a report is missing, or is less than
// half of what was streamed, it is estimated at four characters a token, and the
// report says so.
//
// # Secrets
//
// Keys are registered with the Redactor when a Models is opened, and no error
// leaves this package before it went through it. HTTP redirects are refused,
// since a key in a header of its own would follow them.
package llm
