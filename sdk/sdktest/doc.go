// Package sdktest is a fake host for tests of step plugins in plain Go: [Run] executes
// one step with scripted answers and records its calls, [Manifest] checks the manifest
// of the plugin.
//
// Run executes each step twice. The second time it returns the recorded answers, as a
// host does in a replay, and fails the test if a request differs: such a step is not
// deterministic.
package sdktest
