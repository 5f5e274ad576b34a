// Package abitest is the conformance kit of the plugin ABI: it holds the hosts
// that run step plugins, and the guests that an SDK makes, to the clauses of
// ABI.md.
//
// A host takes part by a small adapter, [Host]. [Check] then judges one module,
// [CheckHost] the host itself with guests of the kit's own, and [Hostile] lists
// guests that mean harm, each with the end it must come to. The results are
// values, so that a command line can print them; [TestGuest] and [TestHost] give
// them to a test, one subtest a clause.
//
// Every step that the kit runs is run twice, the second time answered from the
// record of the first: a guest whose requests differ breaks clause A6.2,
// whatever else the check is about.
package abitest
