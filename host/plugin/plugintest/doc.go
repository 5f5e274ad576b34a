// Package plugintest executes single steps of a built plugin for its author, in the
// sandbox that a run has and with scripted answers to host calls.
//
// [Plugin.Run] executes a step once and returns its calls. [Plugin.Replay] executes it
// again with the recorded answers and reports where it differs. A list of [Case] values
// is the tests of a plugin. No part of the package needs a store or a server.
//
// Package sdktest is the same for steps in Go without a sandbox. It may import the SDK
// only, because plugin projects have a copy of it.
package plugintest
