package store

import (
	"errors"
	"fmt"
	"time"
)

// Errors of every method.
var (
	// ErrClosed is returned after Close, and by a batch that Close could not
	// commit because the disk kept failing; that one also wraps the cause.
	ErrClosed = errors.New("store closed")
	// ErrInvalid is a malformed argument: a run that is no UUID, an empty key,
	// a reserved bucket, a digest that is none.
	ErrInvalid = errors.New("invalid argument")
)

// Errors of batches.
var (
	// ErrSequence fails a batch whose Append is not the next of its run.
	ErrSequence = errors.New("unexpected sequence number")
)

// Errors of blobs.
var (
	ErrNotFound = errors.New("not found")
	ErrCorrupt  = errors.New("content does not match its digest")
)

// ErrHeld is matched by the [HeldError] of Open and Verify.
var ErrHeld = errors.New("store held by another process")

// A HeldError says that another process has the store open.
type HeldError struct {
	Path  string
	PID   int       // 0 if the holder did not say
	Since time.Time // zero likewise
}

func (e *HeldError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("open store %q: %v", e.Path, ErrHeld)
	}
	return fmt.Sprintf("open store %q: %v, pid %d", e.Path, ErrHeld, e.PID)
}

// Is makes the error match [ErrHeld].
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// ErrDamaged is matched by the [DamagedError] of Open and Verify.
var ErrDamaged = errors.New("store is damaged")

// A DamagedError says that the database file cannot be trusted. The file is
// left as it is.
type DamagedError struct {
	Path   string
	Count  int      // places found, at least 1
	Places []string // the first of them, for people
}

func (e *DamagedError) Error() string {
	text := fmt.Sprintf("open store %q: %v", e.Path, ErrDamaged)
	if len(e.Places) > 0 {
		text += ": " + e.Places[0]
	}
	if e.Count > 1 {
		text += fmt.Sprintf(" (and %d more places)", e.Count-1)
	}
	return text
}

// Is makes the error match [ErrDamaged].
func (e *DamagedError) Is(target error) bool { return target == ErrDamaged }

// A StalledError is the Health of a store whose commits fail: the batches are
// held and tried again.
type StalledError struct {
	Since  time.Time // first failure
	Tries  int       // failures since
	Queued int       // batches that wait, those held included
	Err    error     // the newest cause
}

func (e *StalledError) Error() string {
	return fmt.Sprintf("commit store: %d batches held since %s: %v", e.Queued, e.Since.UTC().Format(time.RFC3339), e.Err)
}

// Unwrap returns the cause.
func (e *StalledError) Unwrap() error { return e.Err }
