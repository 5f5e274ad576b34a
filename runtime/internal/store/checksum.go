package store

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Every value in the tables of the database file is followed by a CRC-32C of
// its table, its key and itself. bbolt has checksums for its two meta pages
// only, so without this one a flipped bit in a value would go unnoticed. The
// checksum covers table and key in order to detect a value under a wrong key
// and a changed key.
const checksumBytes = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum returns the checksum of a pair. The table name and the length of the
// key are added byte by byte, because passing such short strings to package
// crc32 would allocate each time.
func checksum(table string, key, value []byte) uint32 {
	sum := ^uint32(0)
	add := func(b byte) { sum = castagnoli[byte(sum)^b] ^ sum>>8 }
	for i := range len(table) {
		add(table[i])
	}
	add(0)
	add(byte(len(key) >> 8))
	add(byte(len(key)))
	return crc32.Update(crc32.Update(^sum, castagnoli, key), castagnoli, value)
}

// appendWithChecksum appends value and its checksum to b.
func appendWithChecksum(b []byte, table string, key, value []byte) []byte {
	b = append(b, value...)
	return binary.BigEndian.AppendUint32(b, checksum(table, key, value))
}

// splitChecksum returns the value of what the file has under a key. ok is false
// if the checksum does not match.
func splitChecksum(table string, key, stored []byte) (value []byte, ok bool) {
	n := len(stored) - checksumBytes
	if n < 0 {
		return nil, false
	}
	value = stored[:n:n]
	return value, binary.BigEndian.Uint32(stored[n:]) == checksum(table, key, value)
}

// A ValueError reports a value in the database file whose checksum does not
// match. It matches [ErrDamaged] and wraps an [*abi.Error] with a hint for the
// operator.
type ValueError struct {
	Dir   string // the state folder
	Table string
	Key   string // for people: run and number of a journal record, otherwise the quoted key
	More  int    // number of further damaged values found by the same read
}

func (e *ValueError) Error() string {
	text := fmt.Sprintf("read table %q key %s: value is damaged: its checksum does not match", e.Table, e.Key)
	if e.More > 0 {
		text += fmt.Sprintf(" (and %d more values)", e.More)
	}
	return text
}

// orNil returns e as an error, nil if e is nil.
func (e *ValueError) orNil() error {
	if e == nil {
		return nil
	}
	return e
}

// Is reports whether target is [ErrDamaged].
func (e *ValueError) Is(target error) bool { return target == ErrDamaged }

// Unwrap returns the error that callers outside of the engine see.
func (e *ValueError) Unwrap() error {
	return &abi.Error{
		Code: abi.Internal, Permanent: true, Message: e.Error(),
		Hint: fmt.Sprintf("stop the process that has the store open, then run: sentinel recover --state %q", e.Dir),
	}
}

// maxKeyText is how many bytes of a key are shown. A damaged length can make a
// key of megabytes.
const maxKeyText = 100

// keyText formats a key for people.
func keyText(table string, key []byte) string {
	if table == journalBucket && len(key) == len(seqKey{}) {
		return fmt.Sprintf("%s record %d", runText(runKey(key[:16])), binary.BigEndian.Uint64(key[16:]))
	}
	if len(key) > maxKeyText {
		return fmt.Sprintf("%q and %d more bytes", key[:maxKeyText], len(key)-maxKeyText)
	}
	return fmt.Sprintf("%q", key)
}

// damagedValue returns the error of a damaged value and records the first one
// for [DB.Damaged].
func (db *DB) damagedValue(table string, key []byte) *ValueError {
	e := &ValueError{Dir: db.path, Table: table, Key: keyText(table, key)}
	db.damaged.CompareAndSwap(nil, e)
	return e
}

// Damaged returns the first damaged value that was read since the store was
// opened, nil if there was none.
func (db *DB) Damaged() *ValueError { return db.damaged.Load() }
