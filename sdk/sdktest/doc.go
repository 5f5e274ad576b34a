// Package sdktest plays the host of a step plugin, so that a step's code is
// tested as plain Go: [Run] carries out one step against scripted answers and
// records what it asked for, [Manifest] checks what the plugin says of itself.
//
// Run does each step twice. The second time it answers from what it recorded,
// as a host does when it replays, and fails the test if a request differs: such
// a step could not be made durable.
package sdktest
