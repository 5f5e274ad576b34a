package definition

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/sentinel-runtime/sentinel/runtime/revision"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// maxRevision is the largest number that a [Key] can hold.
const maxRevision = 999_999_999

// Key is the key of a revision. The keys of a definition have the order of its
// revisions.
func Key(id sentinels.ID, revision int) []byte { return fmt.Appendf(nil, "%s/%09d", id, revision) }

// IsHead reports whether a key of [Bucket] is that of a head.
func IsHead(key []byte) bool { return bytes.IndexByte(key, '/') < 0 }

// Read decodes one revision without decoding the definition, which may be large:
// lists read thousands.
func Read(raw []byte) (revision.Stored, error) {
	s, definition, err := split(raw)
	s.Definition = bytes.Clone(definition)
	return s, err
}

// split is Read with the definition as a part of raw. In what [revision.Stored] marshals to, the
// first unescaped `,"definition":` is that of the last field.
func split(raw []byte) (s revision.Stored, definition []byte, err error) {
	const last = `,"definition":`
	i := bytes.Index(raw, []byte(last))
	if i < 0 || len(raw) < i+len(last)+2 {
		err := json.Unmarshal(raw, &s)
		return s, s.Definition, err
	}
	head := append(bytes.Clone(raw[:i]), '}')
	if err := json.Unmarshal(head, &s); err != nil {
		return s, nil, err
	}
	return s, raw[i+len(last) : len(raw)-1], nil
}
