package store

import (
	"encoding/binary"
	"fmt"
)

// runKey is a run's UUID in binary, the first 16 bytes of its journal keys.
type runKey [16]byte

// seqKey is a journal key: the run, then the sequence number in big-endian
// order, so that keys sort by number.
type seqKey [24]byte

func (k runKey) at(seq uint64) (key seqKey) {
	copy(key[:16], k[:])
	binary.BigEndian.PutUint64(key[16:], seq)
	return key
}

// parseRun parses the canonical text of a UUID, 8-4-4-4-12. Other spellings are
// refused, so that a run has only one name.
func parseRun(text string) (key runKey, err error) {
	if len(text) != 36 {
		return key, fmt.Errorf("run %q: %w: want a UUID, 8-4-4-4-12", text, ErrInvalid)
	}
	n := 0
	for i := 0; i < 36; {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if text[i] != '-' {
				return key, fmt.Errorf("run %q: %w: want a UUID, 8-4-4-4-12", text, ErrInvalid)
			}
			i++
			continue
		}
		hi, lo := nibble(text[i]), nibble(text[i+1])
		if hi > 15 || lo > 15 {
			return key, fmt.Errorf("run %q: %w: want a UUID in lowercase", text, ErrInvalid)
		}
		key[n] = hi<<4 | lo
		n++
		i += 2
	}
	return key, nil
}

func nibble(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	}
	return 255
}
