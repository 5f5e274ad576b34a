package health

import (
	"errors"
	"fmt"

	"github.com/sentinel-runtime/sentinel/runtime/internal/maintenance/statefolder"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// What the operator can do about a folder that cannot be written to, and about a
// disk without free files.
const (
	hintPermission = "make the state folder writable again (mount, chmod, chown); the runtime continues by itself"
	hintFiles      = "delete files on the disk of the state folder; the runtime continues by itself"
)

// hintOf returns what the operator can do about failing commits.
func hintOf(err error) string {
	if e := abi.As(err); e != nil && errors.Is(err, store.ErrDamaged) {
		return e.Hint
	}
	if store.IsReadOnly(err) {
		return hintPermission
	}
	return statefolder.HintSpace
}

// reasonOf returns in words why commits fail.
func reasonOf(err error) string {
	var stalled *store.StalledError
	if errors.As(err, &stalled) {
		// Health has the number of batches that are held, and since when.
		err = stalled.Err
	}
	return fmt.Sprintf("the store cannot be written: %v", err)
}

// readOnlyError returns the error of what may not start. A client may try again
// after some seconds, the time it takes to delete a file.
func readOnlyError(reason, hint string) *abi.Error {
	return &abi.Error{Code: abi.Unavailable, RetryAfterMs: 5000, Message: "the engine is read-only: " + reason, Hint: hint}
}

// HeldError returns the error of something that has happened and is not durable
// yet.
func (m *Monitor) HeldError(what string) *abi.Error {
	e := readOnlyError(what+" is held in memory and not durable yet", "it is written as soon as there is room, do not repeat it: "+statefolder.HintSpace)
	if err := m.failing(); errors.Is(err, store.ErrDamaged) {
		e = readOnlyError(what+" cannot be stored and is lost when this process ends: "+reasonOf(err), hintOf(err))
	}
	e.Permanent = true // a repetition is not wanted
	e.RetryAfterMs = 0
	return e
}
