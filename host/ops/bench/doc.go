// Package bench MEASURES the engine on the machine at hand: what [Run] prints is
// what `sentinel bench` says.
//
// Each row stands beside a reference that was measured in the same minute, a
// bare fsync, the guest without the engine, a process that does nothing, because
// an absolute figure says as much about the machine as about the engine. The
// columns must and aim are the budgets of the design. A row over its must is
// reported and is not an error: on a busy machine everything is slow.
package bench
