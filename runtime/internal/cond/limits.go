package cond

import "time"

// Limits of both lanes. Sizes are bytes of UTF-8 and are checked before
// anything is parsed: goja itself has no limit, and a deep enough source ends
// the process in a way that recover does not see.
const (
	fastSource = 1 << 10  // longest source of the fast lane
	fastData   = 64 << 10 // variables of the fast lane, all together
	fastDepth  = 64       // nesting of a fast source
	fastUnits  = 64       // nesting of the fast lane's variables

	maxSource  = 16 << 10 // longest source at all
	maxDepth   = 200      // brackets open at once in a source
	maxData    = 1 << 20  // variables of one evaluation, all together
	maxUnits   = 1000     // nesting of a variable
	maxPattern = 1 << 10  // longest regular expression in a source
	maxResult  = 1 << 20  // JSON of a result
	maxMessage = 500      // of an exception, the rest is cut
	callStack  = 500      // calls of a script inside each other
)

// Sizes of what is kept between evaluations.
const (
	plans        = 512  // sources whose check and program the fast lane keeps
	variants     = 8    // programs of one source, for different sets of unset names
	childSources = 128  // programs that a child keeps
	childUses    = 1000 // evaluations until a child is replaced
	idleVMs      = 8    // machines of the fast lane
)

// startTimeout bounds the start of a child: the program's own initialisation
// comes before its main.
const startTimeout = 10 * time.Second
