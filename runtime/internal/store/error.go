package store

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Errors of every method.
var (
	// ErrClosed is returned after Close. A batch that Close could not commit,
	// because commits kept failing, returns an error that wraps ErrClosed and
	// the cause.
	ErrClosed = errors.New("store closed")
	// ErrInvalid means a malformed argument: a run that is not a UUID, an empty
	// key, a reserved bucket, a malformed digest.
	ErrInvalid = errors.New("invalid argument")
)

// Errors of batches.
var (
	// ErrSequence means that the sequence number of an Append is not the next
	// of its run.
	ErrSequence = errors.New("unexpected sequence number")
)

// errFlagPending fails commits while the flag file cannot be written.
var errFlagPending = fmt.Errorf("write %s: %w", flagFile, ErrNoSpace)

// Errors of blobs.
var (
	ErrNotFound = errors.New("not found")
	ErrCorrupt  = errors.New("content does not match its digest")
)

// ErrHeld is matched by the [HeldError] of [Open], [Inspect] and other
// functions.
var ErrHeld = errors.New("store held by another process")

// A HeldError reports that another process has the store open.
type HeldError struct {
	Path  string
	PID   int       // 0 if unknown
	Since time.Time // zero if unknown
}

func (e *HeldError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("open store %q: %v", e.Path, ErrHeld)
	}
	return fmt.Sprintf("open store %q: %v, pid %d", e.Path, ErrHeld, e.PID)
}

// Is reports whether target is [ErrHeld].
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// ErrDamaged is matched by the [DamagedError] of [Open], [Compact] and other
// functions.
var ErrDamaged = errors.New("store is damaged")

// A DamagedError reports that the database file is damaged. It wraps an
// [*abi.Error] with a hint for the operator.
type DamagedError struct {
	Path   string
	Count  int      // damaged places found, at least 1
	Places []string // the first of them, for people
}

func (e *DamagedError) Error() string {
	text := fmt.Sprintf("the store %s is damaged", e.Path)
	if len(e.Places) > 0 {
		text += ": " + e.Places[0]
	}
	if e.Count > 1 {
		text += fmt.Sprintf(", and %d more places", e.Count-1)
	}
	return text
}

// Unwrap returns the error that callers outside of the engine see.
func (e *DamagedError) Unwrap() error {
	return &abi.Error{
		Code: abi.Internal, Permanent: true, Message: e.Error(),
		Hint: fmt.Sprintf("end the process that has the store open, if there is one; then sentinel recover --state %q rebuilds the store from what can be read and its newest snapshot, and keeps the damaged file", filepath.Dir(e.Path)),
	}
}

// Is reports whether target is [ErrDamaged].
func (e *DamagedError) Is(target error) bool { return target == ErrDamaged }

// A StalledError is the Health of a store whose commits fail. The batches stay
// queued and the commit is retried.
type StalledError struct {
	Since    time.Time // first failure
	Failures int       // failed commits since
	Queued   int       // queued batches, including those of the failing commit
	Err      error     // the newest cause
}

func (e *StalledError) Error() string {
	return fmt.Sprintf("commit store: %d batches waiting since %s: %v", e.Queued, e.Since.UTC().Format(time.RFC3339), e.Err)
}

// Unwrap returns the cause.
func (e *StalledError) Unwrap() error { return e.Err }
