package runtime

import (
	"github.com/sentinel-runtime/sentinel/runtime/internal/execution"
	"github.com/sentinel-runtime/sentinel/runtime/internal/maintenance/statefolder"
)

// Errors of [Open].
var (
	// ErrHeld means that another process has the store open.
	ErrHeld = statefolder.ErrHeld
	// ErrClosed is returned by every method after Close.
	ErrClosed = execution.ErrClosed
)
