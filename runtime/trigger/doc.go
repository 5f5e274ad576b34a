// Package trigger describes the triggers of stored sentinels to the code that lists
// and observes them: what a trigger waits for and what became of its firings
// ([Info], [Counts]), and one outcome as it happens ([Fired]).
//
// It has no behaviour; package runtime arms triggers and admits their firings, and
// package triggers declares what a kind of trigger implements.
package trigger
