// Package feed is the PROCESS telling what happens, in order, to anyone who
// watches: runs, definitions, triggers, events, plugins, health.
//
// A [Feed] is one ring of entries with numbers that only grow. [Feed.Publish]
// and [Feed.Progress] put into it and never wait for a reader. A [Subscription]
// reads the entries of its topics at its own pace; one that falls behind the
// ring is told how many of its entries it has lost and goes on. A cursor is the
// number of an entry together with the epoch, which is this process's start: a
// reader that comes back with its last cursor continues without loss or
// duplicates as long as the ring goes back that far.
//
// # Topics
//
//	run:ID            all that a run tells
//	run:ID/tree       that, and all that its descendants tell (ID is a root run)
//	runs              start, status and end of every run
//	sentinels         definitions that changed, problems of files
//	triggers          what fired, and what became of it
//	events:PATTERN    the event log; the pattern is that of event triggers
//	plugins           plugins that came, changed, went, or wait for a grant
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
//	<- {"cursor":"E-N"}                        nothing of yours up to here
//	-> {"subscribe":["events:git:**"]}         starts now, not at the cursor
//	-> {"unsubscribe":["runs"]}
//	<- {"subscribed":{"cursor":"E-N","topics":[...]}}
//
// The topic of a message is written as the client subscribed to it. A message
// that fits several of the client's topics comes once, with the others in
// "also". A gap says "upTo" where lost is a bound rather than a count, "text"
// for how much of it was only a model's text in pieces, and lost -1 where the
// cursor is of a process that has ended, so that nobody can count.
package livefeed
