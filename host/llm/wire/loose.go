package wire

import (
	"math"
	"strconv"
	"strings"
)

// A Text is a string of an answer. Servers also send null, numbers or objects where the
// protocol has a string: null is empty, any other value its JSON.
type Text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		return nil
	}
	s, ok := ReadText(raw)
	if !ok {
		s = string(raw)
	}
	*t = Text(s)
	return nil
}

// MaxCount is the largest count that is taken from an answer. It is far above what any model counts, and so
// far below the largest integer that sums of counts do not overflow: one server could otherwise remove
// the limits of a budget that others spend too.
const MaxCount = 1 << 40

// A Count is an integer of an answer, of at most [MaxCount] above or below 0. A number in a string counts,
// null and anything else is 0.
type Count int64

// UnmarshalJSON implements json.Unmarshaler.
func (c *Count) UnmarshalJSON(raw []byte) error {
	text := strings.Trim(string(raw), `"`)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		*c = Count(min(max(n, -MaxCount), MaxCount))
	} else if f, _ := strconv.ParseFloat(text, 64); !math.IsNaN(f) { // beyond its range it is infinite; not a number is 0
		*c = Count(min(max(f, -MaxCount), MaxCount))
	}
	return nil
}
