// Package pluginset keeps the step plugins of an engine: which are live, what each
// may do, and the modules of older versions that unfinished steps still need.
//
// A [Set] has one immutable [Table] of live plugins; a load puts another in its
// place. An iteration of a run has a [View]: the table that was live when the
// iteration began, and the modules of older versions that its unfinished steps
// began with. So an iteration ends with the plugins that it began with.
//
// A [Module] is a loaded plugin with what its manifest says of its fields and the
// grant that it has now. Modules are counted: one without a holder is unloaded, but
// for the last few. The code of every plugin that was ever loaded is in the store,
// where [View.ByDigest] finds it for a step that a crash or a swap left behind.
//
// The states of a plugin are those of package [plugin]: live, waiting for the
// operator's grant, refused.
package pluginset
