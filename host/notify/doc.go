// Package notify sends messages for people to places outside of the host: to a webhook, by a mail
// server and to a command that are configured, and to what a [Notifier] has.
//
// The webhook gets a POST with the headers that Standard Webhooks define. Its body is that of a chat, or
// of a template, see [Formats]. The default is
//
//	{"type": EVENT, "timestamp": TIME, "data": {"title", "text", "severity", "event", "ticket", "run", "url"}}
//
// A message has a key. Repetitions with the same key have the same webhook-id, by which the
// receiver discards them, and are not sent again to what took the message before, while this
// process lives.
//
// # Concurrency
//
// A Service is safe for concurrent use, but for Close, which is called when no message is being sent.
package notify
