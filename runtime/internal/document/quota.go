package document

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A Quota bounds the bytes of the documents that an owner has written last. Documents without an owner
// count for none and are not bounded.
type Quota struct {
	Owner string
	Most  int64 // of the owner
	All   int64 // of all owners together
}

// CountFor has the documents that the transaction writes from now on count for the owner of a quota,
// also those of others that it changes. A write by which the owner, or all owners together, would have
// more than the quota is the error limit, unless it makes a document of the owner smaller.
func (tx *Tx) CountFor(q Quota) { tx.quota = q }

// A stored document is one as the store has it.
type stored struct {
	sentinels.Document
	Owner string `json:"owner,omitempty"` // of the quota that it counts for; the last member, see ownerOf
}

// ownerOf returns the owner of a document as the store has it, without reading all of it. Documents end
// with "}}" or the end of another value where there is no owner.
func ownerOf(value []byte) string {
	i := bytes.LastIndex(value, []byte(`,"owner":"`))
	if i < 0 || !bytes.HasSuffix(value, []byte(`"}`)) {
		return ""
	}
	var last struct {
		Owner string `json:"owner"`
	}
	if json.Unmarshal(append([]byte("{"), value[i+1:]...), &last) != nil { // it was a member of the data
		return ""
	}
	return last.Owner
}

// count notes the change of a document from one owner and size to others, "" and 0 for none. It
// returns an error if that exceeds the quota of the transaction.
func (tx *Tx) count(key []byte, owner string, size int, nowOwner string, now int) error {
	if owner == "" && nowOwner == "" {
		return nil
	}
	if tx.usage == nil {
		if err := tx.store.loadUsage(tx); err != nil {
			return err
		}
		tx.usage = maps.Clone(tx.store.usage)
	}
	before, after := tx.usage[owner], tx.usage[nowOwner]
	if owner != "" {
		tx.usage[owner] -= int64(len(key) + size)
	}
	if nowOwner == "" {
		return nil
	}
	tx.usage[nowOwner] += int64(len(key) + now)
	if owner == nowOwner && now <= size {
		return nil
	}
	var all int64
	for _, n := range tx.usage {
		all += n
	}
	var err error
	switch {
	case tx.usage[nowOwner] > tx.quota.Most:
		err = overQuota(nowOwner+" has", tx.usage[nowOwner], tx.quota.Most)
	case all > tx.quota.All:
		err = overQuota("agents and models have", all, tx.quota.All)
	}
	if err != nil { // a caller may handle the error and commit what it wrote before
		tx.usage[owner], tx.usage[nowOwner] = before, after
	}
	return err
}

func overQuota(who string, have, most int64) error {
	e := failure.New(abi.Limit, "documents: %s %d KiB with this one, at most %d", who, have>>10, most>>10)
	e.Permanent, e.Hint = true, "delete documents, messages or memories, or have a person raise limits.agentBytes"
	return e
}

// loadUsage reads what the owners of documents have, once: stores in which no document has an owner
// never need it.
func (s *Store) loadUsage(tx *Tx) error {
	if s.usage != nil {
		return nil
	}
	usage := map[string]int64{}
	err := tx.merged(area{bucket: Bucket}, "", false, func(suffix string, value []byte, w *pendingWrite) (bool, error) {
		switch {
		case strings.HasPrefix(suffix, entryMark): // of an index
		case w != nil && w.owner != "":
			usage[w.owner] += int64(len(suffix) + w.size)
		case w == nil:
			if owner := ownerOf(value); owner != "" {
				usage[owner] += int64(len(suffix) + len(value))
			}
		}
		return true, nil
	})
	if err == nil {
		s.usage = usage
	}
	return err
}
