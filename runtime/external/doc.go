// Package external declares what a runtime needs from outside of itself: commands, models,
// processes, contexts, and the requests and folders of plugins. The host process
// implements these interfaces; an embedder may implement its own. All implementations
// are called by several runs at once.
package external
