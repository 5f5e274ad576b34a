package document

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"time"
)

// A Descending value reverses the order of its field in an [Index].
type Descending struct{ Value any }

// maxText bounds a text in an index, in bytes, because the store bounds its keys.
const maxText = 1024

// appendOrdered appends the values to key so that keys are in the order of the
// values: nil, then booleans, numbers, times and texts. A text ends with a byte
// pair that no text contains, so that "a" followed by anything precedes "ab".
func appendOrdered(key []byte, values ...any) ([]byte, error) {
	for _, v := range values {
		switch v := v.(type) {
		case nil:
			key = append(key, 1)
		case bool:
			key = append(key, 2, 0)
			if v {
				key[len(key)-1] = 1
			}
		case int:
			key = appendInt(append(key, 3), int64(v))
		case int64:
			key = appendInt(append(key, 3), v)
		case time.Time:
			key = appendInt(append(key, 4), v.UnixNano())
		case string:
			if len(v) > maxText {
				return nil, fmt.Errorf("a text of %d bytes: an index takes at most %d", len(v), maxText)
			}
			key = append(key, 5)
			for i := range len(v) {
				key = append(key, v[i])
				if v[i] == 0 {
					key = append(key, 0xff)
				}
			}
			key = append(key, 0, 1)
		case Descending:
			from := len(key)
			var err error
			if key, err = appendOrdered(key, v.Value); err != nil {
				return nil, err
			}
			for i := from; i < len(key); i++ {
				key[i] = ^key[i]
			}
		default:
			return nil, fmt.Errorf("a %T is not a value of an index", v)
		}
	}
	return key, nil
}

// appendInt appends n so that negative numbers precede positive ones.
func appendInt(key []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(key, uint64(n)^(1<<63))
}

// within reports whether key is at or behind from and before to, where nil is open.
func within(key, from, to []byte) bool {
	return (from == nil || bytes.Compare(key, from) >= 0) && (to == nil || bytes.Compare(key, to) < 0)
}

// join returns a new slice with b behind a.
func join(a, b []byte) []byte { return append(slices.Clip(slices.Clone(a)), b...) }
