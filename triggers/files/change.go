package files

import (
	"encoding/hex"
	"slices"
	"strings"
	"time"
)

// Op is what happened to a file between two looks at it.
type Op string

// The operations.
const (
	Created  Op = "created"
	Modified Op = "modified" // its content is another one
	Deleted  Op = "deleted"
)

// A Change is one file that is not as it was.
type Change struct {
	Path string `json:"path"` // relative to the root, with slashes
	Op   Op     `json:"op"`
	// Digest is the SHA-256 of the content in hex; empty for a file that is
	// gone, cannot be read, or is larger than [Options.HashLimit].
	Digest string `json:"digest,omitempty"`
}

// A File is one file as it was last seen.
type File struct {
	Path     string
	Size     int64
	Modified time.Time
	Changed  time.Time // of its content, name or rights; Modified where the system has no such time
	Digest   string    // as in [Change]
}

// entry is what the watcher remembers of a file: about 100 bytes beside its
// path, so a hundred thousand files take about 20 MB.
type entry struct {
	stamp  stamp
	sum    [32]byte // of the content, if hashed
	hashed bool
	// racy says that the file was written so shortly before it was read that a
	// second write could bear the same times: the next look reads it again.
	racy bool
}

func (e *entry) digest() string {
	if e == nil || !e.hashed {
		return ""
	}
	return hex.EncodeToString(e.sum[:])
}

// same reports whether two states of a path are the same content. Without
// hashes the times decide.
func same(a, b *entry) bool {
	switch {
	case a == nil || b == nil:
		return a == b
	case a.hashed && b.hashed:
		return a.sum == b.sum
	default:
		return a.hashed == b.hashed && a.stamp.size == b.stamp.size && a.stamp.modified == b.stamp.modified
	}
}

// A transition is a path's state before and after, as one subscriber has to
// learn it: however often it changed in between, only the ends count.
type transition struct{ before, after *entry }

// changes turns transitions into changes, by path.
func changes(pending map[string]transition) []Change {
	out := make([]Change, 0, len(pending))
	for path, t := range pending {
		c := Change{Path: path, Digest: t.after.digest()}
		switch {
		case same(t.before, t.after):
			continue
		case t.before == nil:
			c.Op = Created
		case t.after == nil:
			c.Op = Deleted
		default:
			c.Op = Modified
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return out
}
