// Package livefeed publishes what happens in a process to its clients, in order
// and over WebSockets: runs, definitions, triggers, events, plugins, health.
//
// A [Feed] is one ring buffer of entries with growing sequence numbers.
// [Feed.Publish] and [Feed.Progress] append to it and never wait for a reader. A
// [Subscription] reads the entries of its topics at its own pace. One that falls
// behind the ring receives a gap with the number of lost entries, and continues.
// A cursor is the number of an entry and the epoch, which identifies the process.
// A reader that resumes with its last cursor misses and repeats nothing, as long
// as the ring goes back that far.
//
// # Topics
//
//	run:ID            the progress of a run
//	run:ID/tree       the progress of a root run and of its descendants
//	runs              start, status and end of every run
//	sentinels         definitions that changed, problems of files
//	triggers          firings and their outcomes
//	events:PATTERN    the event log; the pattern is that of event triggers
//	plugins           plugins that were loaded, changed, unloaded, or wait for a grant
//	health            the host's state when it changes
//
// # Sockets
//
// [Handler] serves the feed over WebSockets, with the subprotocol sentinel.v1:
//
//	GET /ws?topics=run:ID,runs&cursor=C
//	<- {"hello":{"cursor":"E-N","version":"...","topics":[...]}}
//	<- {"cursor":"E-N","topic":"runs","kind":"run.start","time":"...","event":{...}}
//	<- {"gap":{"lost":12,"cursor":"E-N"}}
//	<- {"cursor":"E-N"}                        no entry of these topics up to here
//	-> {"subscribe":["events:git:**"]}         starts now, not at the cursor
//	-> {"unsubscribe":["runs"]}
//	<- {"subscribed":{"cursor":"E-N","topics":[...]}}
//
// The topic of a message is written as the client subscribed to it. A message
// that matches several of the client's topics is sent once, with the others in
// "also". In a gap, "upTo" means that lost is an upper bound, "text" is how many
// of the lost entries were pieces of a model's text, and lost -1 means that the
// number is unknown, because the cursor is of an earlier process.
package livefeed
