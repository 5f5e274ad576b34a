// Package cond evaluates conditions: JavaScript expressions over the variables
// of a run. Variables and results are JSON.
//
// # Conditions
//
// A condition is exactly one expression, and it must not change anything. $name
// is a variable. A variable without a value is undefined. A path through undefined or
// null is undefined at any depth, and so is a call on it, as if everything were written
// with "?.". That holds for all values of an expression, also within its functions.
// Any other name must be one of JavaScript's pure built-ins or declared by the
// condition.
//
// There is no clock, randomness, promise or eval. So the same variables give
// the same result, also in a replay. Only the value of an expression can be
// false: everything that prevents a value is an error.
//
// # Fast path and child processes
//
// Hostile source text can crash goja: deep nesting overflows the stack, which
// recover does not catch, and its Interrupt does not stop built-ins that fill
// memory for seconds. So this process only evaluates sources that a grammar of
// our own accepts: references, members, operators, the word undefined
// and nine methods, all with time and memory linear in their operands, in at
// most 1 KB of source and over at most 64 KB of variables.
//
// All other sources are evaluated in a child process. It limits its own memory
// and is killed after a timeout. Both paths parse, check, compile and run a
// source with the same code. A fuzz test compares their results.
//
// The VMs of the fast path are pooled. They are frozen, although no source of
// the fast path can write. A child uses a new VM for every evaluation. It is
// replaced after an error, after 1000 evaluations, or when it has grown.
//
// # Concurrency
//
// An [Evaluator] is safe for concurrent use. Evaluations on the fast path never
// wait for each other. The others wait for one of Options.MaxChildren
// processes, until their context ends. A child always reads its stdin, so it
// ends when its parent ends, even during an evaluation. Close returns when all
// children have ended.
package cond
