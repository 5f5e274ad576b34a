package store

import "errors"

// ErrNoRoom says that something was not begun because the disk is short.
var ErrNoRoom = errors.New("not enough room on the disk")

// Disk is the room on the file system of a folder, for the user of this
// process. Numbers that the system does not tell are -1.
type Disk struct {
	Free, Total           int64 // bytes
	FreeFiles, TotalFiles int64 // names that can still be made; some file systems have no such number
}
