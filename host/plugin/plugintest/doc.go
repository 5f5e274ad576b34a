// Package plugintest runs step tests against built plugins: a [Plugin] is the
// [sdktest.Target] of a module in any language, in the sandbox that a run has. The
// format of cases, the fake host, replay and comparison are those of package sdktest. No
// part of the package needs a store or a server.
package plugintest
