// Package plugintest carries out single STEPS of a plugin for those who write
// it: in the sandbox that a run has, against answers that they wrote down.
//
// [Plugin.Run] does a step once and says what it asked for, [Plugin.Replay] does
// it again from that record and says where it went another way, and a list of
// [Case] values is a plugin's tests. No part of it needs a store or a server.
package plugintest
