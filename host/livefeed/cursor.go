package livefeed

import (
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Cursor is a position in a feed. Its text form is "E-N"; it is opaque to
// clients.
type Cursor struct {
	Epoch string // of the process; lower-case letters and digits
	Seq   uint64 // of the last entry that was delivered, 0 before the first
}

// maxCursor bounds a cursor's text, in bytes: 13 digits of base 36 hold any
// start time, 20 decimal ones any number.
const maxCursor = 34

// ParseCursor parses the text form of a cursor. Its error is an *abi.Error.
func ParseCursor(s string) (Cursor, error) {
	epoch, digits, ok := strings.Cut(s, "-")
	if !ok || len(s) > maxCursor || epoch == "" || strings.Trim(epoch, "0123456789abcdefghijklmnopqrstuvwxyz") != "" {
		return Cursor{}, badCursor(s)
	}
	seq, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || strconv.FormatUint(seq, 10) != digits { // no sign, no leading zeros: each position has one text
		return Cursor{}, badCursor(s)
	}
	return Cursor{Epoch: epoch, Seq: seq}, nil
}

// shownText bounds the text of a client in an error message, in bytes.
const shownText = 80

func badCursor(s string) error {
	return &abi.Error{Code: abi.BadFields, Field: "cursor", Message: "cursor " + strconv.Quote(textcut.Mark(s, shownText)) + ": not a cursor of this feed",
		Hint: "use a cursor that the feed sent, or none to start from now"}
}

// String returns the text form.
func (c Cursor) String() string { return string(c.append(nil)) }

func (c Cursor) append(b []byte) []byte {
	b = append(b, c.Epoch...)
	b = append(b, '-')
	return strconv.AppendUint(b, c.Seq, 10)
}
