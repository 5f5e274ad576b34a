package files

import (
	"encoding/hex"
	"slices"
	"strings"
	"time"
)

// Op is the change of a file between two checks.
type Op string

// The operations.
const (
	Created  Op = "created"
	Modified Op = "modified" // the content differs
	Deleted  Op = "deleted"
)

// A Change is the change of one file.
type Change struct {
	Path string `json:"path"` // relative to the root, with slashes
	Op   Op     `json:"op"`
	// Digest is the SHA-256 of the content in hex. It is empty for a file that was
	// deleted, cannot be read, or is larger than [Options.HashLimit].
	Digest string `json:"digest,omitempty"`

	at time.Time // of the change; of a deletion about when it was found
}

// ChangedAt returns when the file was changed; of a deletion about when it was found.
func (c Change) ChangedAt() time.Time { return c.at }

// A File is the state of one file at its last check.
type File struct {
	Path    string
	Changed time.Time // of content, name or mode; of content where the system has no change time
	Digest  string    // as in [Change]
}

// entry is the state of a file in the watcher's index: about 100 bytes besides the
// path, so 100,000 files take about 20 MB.
type entry struct {
	stamp  stamp
	sum    [32]byte // of the content, if hashed
	hashed bool
	// racy means that the file was written so shortly before it was read that a
	// later write could leave the same times. The next check reads it again.
	racy bool
}

func (e *entry) digest() string {
	if e == nil || !e.hashed {
		return ""
	}
	return hex.EncodeToString(e.sum[:])
}

// same reports whether two states have the same content. Without hashes it
// compares size and modification time.
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

// A transition is the state of a path at a subscriber's last batch, and now. The
// states in between do not matter.
type transition struct {
	before, after *entry
	found         time.Time // about when the change was made, not later than it was found
}

// changes returns the changes of the transitions that have any, by path.
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
			c.Op, c.at = Deleted, t.found
		default:
			c.Op = Modified
		}
		if t.after != nil {
			c.at = t.after.stamp.changedAt()
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return out
}
