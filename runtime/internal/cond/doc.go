// Package cond DECIDES for the engine: it evaluates the conditions of sentinels,
// JavaScript expressions over the variables of a run, JSON in and JSON out.
//
// # What a condition is
//
// Exactly one expression, which reads and does not write. $name is a variable.
// One without a value is undefined, and so is any path through it; a call on
// such a path is an exception, unless it is written with "?.". A variable whose
// value is null has a value, so $name.x of it is an exception. Any other name
// must be one of JavaScript's pure built-ins or declared by the condition.
// There is no clock, no chance, no promise, no eval: the same variables give the
// same answer, in a replay too. Only the value of an expression is ever false;
// whatever keeps it from having one is an error.
//
// # Two lanes
//
// goja can be brought down by text alone: deep nesting overflows the stack,
// which recover does not see, and its Interrupt does not reach built-ins that
// fill memory for seconds. So a source runs in this process only if a grammar of
// our own ([Fast]) takes it: references, members, operators and nine methods,
// all linear in their operands, in at most 1 KB, over at most 64 KB of variables.
// Beyond DESIGN's list that grammar has the word undefined, which is constant.
// Everything else goes to a child process that bounds its own data and is killed
// when its time is over. Both lanes parse, check, compile and run with the same
// code and differ in nothing but where: a fuzz test compares them.
//
// Machines of the fast lane are kept and serve many conditions. They are frozen,
// although no source of that lane could write. A child gives every evaluation a
// machine of its own, and is replaced after an error, after 1000 evaluations, or
// when it has grown.
//
// # Concurrency
//
// An [Evaluator] is safe for concurrent use. Fast evaluations never wait for
// each other; slow ones wait for one of Options.MaxChildren processes and honour
// their context meanwhile. A child reads its stdin all the time, so it ends when
// its parent does, whatever it is evaluating. Close returns when all are gone.
package cond
