// Package sdktest is the kit for step tests of plugins: a fake host with scripted answers,
// the format of test cases, replay, and the comparison of results.
//
// [Run] and [Cases] execute steps of a plugin in Go natively, from `go test`. The command
// `sentinel plugin test` executes the same cases against the built module of a plugin in
// any language, by the [Target] of package host/plugin/plugintest. [Manifest] checks the
// manifest.
//
// Each step is executed again with the recorded answers, as a host does in a replay: once
// from its start, and once from each of its checkpoints. A test fails if a request or the
// result differs, because such a step is not deterministic.
package sdktest
