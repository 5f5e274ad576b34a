package wire

import (
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

// A Count is an integer of an answer. A number in a string counts, null and anything
// else is 0.
type Count int64

// UnmarshalJSON implements json.Unmarshaler.
func (c *Count) UnmarshalJSON(raw []byte) error {
	text := strings.Trim(string(raw), `"`)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		*c = Count(n)
	} else if f, err := strconv.ParseFloat(text, 64); err == nil && f > -1<<62 && f < 1<<62 {
		*c = Count(f)
	}
	return nil
}
