// Package cassette records the turns of language models to a file and answers
// from it again, so that a run can be repeated without a model.
//
// # The file
//
// JSON lines. The first is the header, {"cassette": "sentinel", "version": 1}.
// Every other line is one turn in the order in which they ended: its number n,
// its key, the request, and the reply or the error, or that the run cancelled it, with how long it took. A
// line is written whole and synced before the turn returns, so a process that
// is killed loses at most a turn that no caller has received. A last line without an end is
// ignored on reading, and said so; recording on cuts it off.
//
// Requests and replies go through the Redactor. The workspace's absolute path
// is written as $WORKSPACE, and comes back as the path of the workspace the
// cassette is played in; in front of a real $WORKSPACE dollars are doubled, so
// that both survive. So a cassette is the same on every machine.
//
// # Matching
//
// The key is a hash of the request as canonical JSON, in which what differs
// from run to run is replaced: in all text, the workspace's path, then times of
// day with a date (RFC 3339), UUIDs, ids of shell executions where they follow
// the word executionId, and durations (a number with the unit ns, us, µs, ms,
// s, m, h, or spelled out) become $WORKSPACE, $TIME, $UUID, $EXECUTION and
// $DURATION, and a number under a name that ends in "Ms", "durationMs" for one,
// becomes 0. It holds no id of the run. Changing this rule is a new version.
//
// A request is answered by the first turn not yet used that has its key. If
// there is none it has changed, and takes of the turns not yet used the one
// most like it: with the same tools, first message and model if there is such a
// one, then with as many messages, then with the same system text, and among
// equals the first. Each such answer is a [Divergence], and an error in strict
// mode. Parallel branches may ask in any order.
//
// A turn that the run cancelled, as a failed branch or a time limit does, is answered by another one of its key, else
// not at all: it waits until it is cancelled again. It takes no other turn, which onFailure or finally may ask for.
package cassette
