// Package abitest is the conformance kit of the plugin ABI: it tests hosts that execute
// step plugins, and the guests of an SDK, against the clauses of ABI.md.
//
// A host is tested through a small adapter, [Host]. [Check] tests one module,
// [CheckHost] the host itself with guests of the kit, and [Hostile] lists guests that
// attack their host, each with the result that it must have. The results are values, so
// that a command line can print them; [TestGuest] and [TestHost] report them to a test,
// with one subtest for each check.
//
// The kit executes every step twice, the second time with the recorded answers of the
// first: a guest whose requests differ violates clause A6.2, in any check.
package abitest
