// Package capacity decides what may execute or stay in memory, over all runs.
//
//   - [Residents]: which waiting guests stay in memory. The one that has waited longest
//     is evicted first; a replay restores it.
//   - [Turns]: steps that are suspected of crashing the host execute one at a time.
//   - [Effects]: calls under way that a crash would leave in doubt, which a graceful
//     shutdown waits for.
package capacity
