package sign

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Statement is the content of a trusted comment.
type Statement struct {
	Name    string `json:"name,omitempty"` // the plugin's own
	Version string `json:"version,omitempty"`
	File    string `json:"file,omitempty"`   // its name, without a folder
	Digest  string `json:"digest,omitempty"` // "sha256:…"
	// At is when it was signed, to the second, by the clock of who signed.
	At time.Time `json:"at,omitzero"`
	// Comment is the whole comment.
	Comment string `json:"comment,omitempty"`
}

// prefix begins the comments that [Sign] writes.
const prefix = "sentinel plugin "

// text is the comment for a statement. Words are separated by spaces, so what
// could hold one is quoted away.
func (s Statement) text() string {
	return fmt.Sprintf("%s%s version:%s file:%s %s timestamp:%d", prefix, Word(s.Name), Word(s.Version), Word(s.File), s.Digest, s.At.Unix())
}

// Word is text without what would end a word or a line of a comment.
func Word(s string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r == 0x7f || r > 0x7e {
			return '_'
		}
		return r
	}, s)
}

// parseStatement reads a comment. One that is not ours has nothing but its text.
func parseStatement(comment string) Statement {
	s := Statement{Comment: comment}
	rest, ok := strings.CutPrefix(comment, prefix)
	if !ok {
		return s
	}
	for i, field := range strings.Fields(rest) {
		key, value, _ := strings.Cut(field, ":")
		switch {
		case i == 0:
			s.Name = field
		case key == "version":
			s.Version = value
		case key == "file":
			s.File = value
		case key == "sha256":
			s.Digest = field
		case key == "timestamp":
			if n, err := strconv.ParseInt(value, 10, 64); err == nil {
				s.At = time.Unix(n, 0).UTC()
			}
		}
	}
	return s
}
