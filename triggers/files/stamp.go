package files

import (
	"io/fs"
	"time"
)

// A stamp is the cheap part of a file's state. Equal stamps mean that nothing
// was written in between, except within the grain of the system's clock.
type stamp struct {
	size     int64
	modified int64 // nanoseconds since 1970; anyone may set it
	changed  int64 // likewise, set by the system alone; 0 where there is none
	inode    uint64
}

func stampOf(info fs.FileInfo) stamp {
	s := stamp{size: info.Size(), modified: info.ModTime().UnixNano()}
	s.changed, s.inode = system(info)
	return s
}

// grain is more than the coarsest clock by which file systems in use stamp
// files, FAT's two seconds left out.
const grain = 50 * time.Millisecond

// recent reports whether a file was changed so shortly before now that another
// change could leave the same stamp. A time in the future, from another clock,
// says nothing and must not make the file be read for ever.
func (s stamp) recent(now time.Time) bool {
	return now.Sub(s.changedAt()).Abs() < grain
}

func (s stamp) changedAt() time.Time {
	if s.changed == 0 {
		return time.Unix(0, s.modified)
	}
	return time.Unix(0, s.changed)
}
