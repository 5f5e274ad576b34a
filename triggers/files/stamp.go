package files

import (
	"io/fs"
	"time"
)

// A stamp is the part of a file's state that stat returns. Equal stamps mean that
// the file was not written in between, except within the granularity of file
// times.
type stamp struct {
	size     int64
	modified int64 // nanoseconds since 1970; programs can set it
	changed  int64 // nanoseconds since 1970; only the system sets it. 0 if unknown
	inode    uint64
}

func stampOf(info fs.FileInfo) stamp {
	s := stamp{size: info.Size(), modified: info.ModTime().UnixNano()}
	s.changed, s.inode = changeTime(info)
	return s
}

// granularity is longer than that of file times in common file systems, except
// for the two seconds of FAT.
const granularity = 50 * time.Millisecond

// recent reports whether a file was changed so shortly before now that another
// change could leave the same stamp. A time further in the future comes from
// another clock; it is not recent, because the file would be read again forever.
func (s stamp) recent(now time.Time) bool {
	return now.Sub(s.changedAt()).Abs() < granularity
}

// changedAt returns the change time, or the modification time if it is unknown.
func (s stamp) changedAt() time.Time {
	if s.changed == 0 {
		return time.Unix(0, s.modified)
	}
	return time.Unix(0, s.changed)
}
