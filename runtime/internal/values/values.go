// Package values keeps the values of a run's records: small ones in the record, large
// ones as blobs beside the journal.
package values

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/redact"
)

// blobSize is the size in bytes above which a value is stored as a blob.
const blobSize = 64 << 10

// maxInlineVariables is the size in bytes of the values of a scope that a record may
// contain directly.
const maxInlineVariables = 4 * blobSize

// A Store keeps and loads values.
//
// # Concurrency
//
// Safe for concurrent use.
type Store struct {
	// Redact removes secrets from values that [Store.Redacted] keeps.
	Redact redact.Redactor
	// PutBlob makes a blob durable and returns its digest. On a full disk it waits for
	// space until the runtime ends.
	PutBlob func(data []byte) (digest string, err error)
	// Blob reads a blob.
	Blob func(digest string) ([]byte, error)
}

// Redacted redacts v and returns it for a record.
func (s *Store) Redacted(v json.RawMessage) (journal.Value, error) { return s.Keep(s.Redact.JSON(v)) }

// Definition is Redacted for the canonical JSON of a definition. If a secret was removed, the value
// is a blob that is marked: what a run executes must not depend on words that are secrets.
func (s *Store) Definition(canonical json.RawMessage) (journal.Value, error) {
	clean := s.Redact.JSON(canonical)
	if bytes.Equal(clean, canonical) {
		return s.Keep(clean)
	}
	v, err := s.keepBlob(clean)
	if err == nil {
		v.Redacted = true
	}
	return v, err
}

// Keep returns v, which is already redacted, for a record. A large value is stored as a
// durable blob first.
func (s *Store) Keep(v json.RawMessage) (journal.Value, error) {
	if len(v) <= blobSize {
		return journal.Value{JSON: journal.Compact(v)}, nil
	}
	return s.keepBlob(v)
}

// keepBlob stores v as a durable blob.
func (s *Store) keepBlob(v json.RawMessage) (journal.Value, error) {
	digest, err := s.PutBlob(v)
	if err != nil {
		return journal.Value{}, fmt.Errorf("keep value of %d bytes: %w", len(v), err)
	}
	return journal.Value{Blob: &journal.Blob{Digest: digest, Size: int64(len(v)), Loaded: v}}, nil
}

// KeepScope returns variables for a record that holds all of them: large values are
// blobs. If the others are too many together, all but the smallest are blobs too: a
// value that did not change since the last record is then not written again.
func (s *Store) KeepScope(vars map[string]journal.Value) (map[string]journal.Value, error) {
	inline, most := 0, blobSize
	for _, v := range vars {
		if len(v.JSON) <= blobSize {
			inline += len(v.JSON)
		}
	}
	if inline > maxInlineVariables {
		most = 512
	}
	for name, v := range vars {
		if len(v.JSON) <= most {
			continue
		}
		blob, err := s.keepBlob(v.JSON)
		if err != nil {
			return nil, fmt.Errorf("variable %q: %w", name, err)
		}
		vars[name] = blob
	}
	return vars, nil
}

// KeepLarge returns variables for a record that holds those that are set: large values are blobs, so
// that a value which a step passes on is not written again.
func (s *Store) KeepLarge(vars map[string]json.RawMessage) (small map[string]json.RawMessage, large map[string]journal.Value, err error) {
	for name, v := range vars {
		if len(v) <= blobSize {
			continue
		}
		if large == nil {
			small, large = maps.Clone(vars), map[string]journal.Value{}
		}
		delete(small, name)
		if large[name], err = s.keepBlob(v); err != nil {
			return nil, nil, fmt.Errorf("variable %q: %w", name, err)
		}
	}
	if large == nil {
		return vars, nil, nil
	}
	return small, large, nil
}

// Load returns the content of a value, nil for an empty one.
func (s *Store) Load(v journal.Value) (json.RawMessage, error) {
	if v.Blob == nil || v.Loaded != nil {
		return v.Content(), nil
	}
	return s.Blob(v.Digest)
}

// LoadState loads the blobs of the values that an active run uses.
func (s *Store) LoadState(st *history.State) error {
	if err := s.LoadScope(st.Scope); err != nil {
		return err
	}
	for _, branch := range st.Branches {
		if err := s.LoadScope(branch); err != nil {
			return err
		}
	}
	return s.loadBlob(&st.RAGContext)
}

// LoadScope loads the blobs of a scope.
func (s *Store) LoadScope(scope *history.Scope) error {
	for name, v := range scope.Variables {
		if err := s.loadBlob(&v); err != nil {
			return fmt.Errorf("variable %q: %w", name, err)
		}
		scope.Variables[name] = v
	}
	if err := s.loadBlob(&scope.Last); err != nil {
		return fmt.Errorf("output of the last step: %w", err)
	}
	return nil
}

func (s *Store) loadBlob(v *journal.Value) error {
	if v.Blob == nil || v.Loaded != nil {
		return nil
	}
	content, err := s.Load(*v)
	if err == nil {
		*v = v.Load(content)
	}
	return err
}

// Contents returns the contents of values by their names.
func Contents(values map[string]journal.Value) map[string]json.RawMessage {
	raw := make(map[string]json.RawMessage, len(values))
	for name, v := range values {
		raw[name] = v.Content()
	}
	return raw
}
