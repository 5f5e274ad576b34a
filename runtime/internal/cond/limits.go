package cond

import "time"

// Limits of an evaluation. Sizes are bytes of UTF-8. They are checked before
// parsing: goja has no limits, and a source that is nested deeply enough
// crashes the process in a way that recover does not catch.
const (
	fastSource    = 1 << 10  // longest source of the fast path
	fastData      = 64 << 10 // total size of the variables of the fast path
	fastDepth     = 64       // nesting of a fast source
	fastDataDepth = 64       // nesting of the fast path's variables

	maxSource    = 16 << 10 // longest source
	maxDepth     = 200      // open brackets in a source
	maxData      = 32 << 20 // total size of the variables of one evaluation, of which each has at most 16 MiB
	maxDigits    = 1000     // digits of a whole number that keeps all of them
	maxDataDepth = 1000     // nesting of a variable
	maxPattern   = 1 << 10  // longest regular expression in a source
	maxResult    = 16 << 20 // JSON of a result
	maxMessage   = 500      // length of an exception's text
	callStack    = 500      // nested calls of a script
)

// Sizes of caches.
const (
	maxPlans         = 512  // plans of sources
	maxChildPrograms = 128  // programs of a child
	maxChildUses     = 1000 // evaluations until a child is replaced
	maxIdleVMs       = 8    // VMs of the fast path
)

// startTimeout bounds the start of a child, which includes the initialization
// of the whole program.
const startTimeout = 10 * time.Second

// waitFactor bounds the time on the wall of an exchange with a child, as a multiple
// of its limit of processor time.
const waitFactor = 10

// dataRate is how many bytes of variables have one more second of processor time.
const dataRate = 4 << 20
