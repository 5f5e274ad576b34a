// Package bundle brings STEP PLUGINS from where they are made to where they run:
// it packs and pushes them, fetches and checks them, and installs them into the
// folder from which a host loads them.
//
// [Open] gets a plugin from a file, an address or a registry and checks all that
// can be known before it is kept: its digest, its signature, that it is a module
// this host can run, and what it asks for. [Plugin.Install] then writes it and its
// line in the lock, as one thing. A host that serves the folder has it live by
// that; whether it may do what it asks for is decided elsewhere.
//
// # Concurrency
//
// Plugins are values that nothing changes. Installs into one folder wait for each
// other, also those of other processes.
package bundle
