package values

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
)

// blobs are blobs in memory.
type blobs map[string][]byte

func (b blobs) store() *Store {
	return &Store{
		PutBlob: func(data []byte) (string, error) {
			sum := sha256.Sum256(data)
			digest := hex.EncodeToString(sum[:])
			b[digest] = bytes.Clone(data)
			return digest, nil
		},
		Blob: func(digest string) ([]byte, error) {
			data, ok := b[digest]
			if !ok {
				return nil, errors.New("no such blob")
			}
			return data, nil
		},
	}
}

func text(n int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("x", n-2) + `"`) }

func TestKeepAndLoad(t *testing.T) {
	for _, c := range []struct {
		size int
		blob bool
	}{{2, false}, {blobSize, false}, {blobSize + 1, true}} {
		b := blobs{}
		s := b.store()
		v, err := s.Keep(text(c.size))
		if err != nil {
			t.Fatal(err)
		}
		if (v.Blob != nil) != c.blob || (len(b) == 1) != c.blob {
			t.Errorf("value of %d bytes: blob %v, %d blobs stored", c.size, v.Blob, len(b))
		}
		// As recovery reads it: the content is not loaded.
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var read journal.Value
		if err := json.Unmarshal(raw, &read); err != nil {
			t.Fatal(err)
		}
		got, err := s.Load(read)
		if err != nil || !bytes.Equal(got, text(c.size)) {
			t.Errorf("value of %d bytes: loaded %d bytes, error %v", c.size, len(got), err)
		}
	}
}

func TestRedactedKeepsNoSecret(t *testing.T) {
	b := blobs{}
	s := b.store()
	s.Redact = func(v []byte) []byte { return bytes.ReplaceAll(v, []byte("secret"), []byte("***")) }
	large := json.RawMessage(`"secret` + strings.Repeat("x", blobSize) + `"`)
	for _, v := range []json.RawMessage{json.RawMessage(`"secret"`), large} {
		kept, err := s.Redacted(v)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(kept.Content(), []byte("secret")) {
			t.Errorf("kept %.40s", kept.Content())
		}
	}
	for _, data := range b {
		if bytes.Contains(data, []byte("secret")) {
			t.Errorf("blob has %.40s", data)
		}
	}
}

func TestKeepScope(t *testing.T) {
	inline := func(n, size int) map[string]journal.Value {
		vars := map[string]journal.Value{"small": {JSON: json.RawMessage("1")}}
		for i := range n {
			vars[string(rune('a'+i))] = journal.Value{JSON: text(size)}
		}
		return vars
	}
	for _, c := range []struct {
		name        string
		vars        map[string]journal.Value
		blobs, left int
	}{
		{"few", inline(3, blobSize), 0, 4},
		{"one large", inline(1, blobSize+1), 1, 1},
		{"too many together", inline(5, blobSize), 5, 1},
	} {
		kept, err := blobs{}.store().KeepScope(c.vars)
		if err != nil {
			t.Fatal(err)
		}
		asBlob := 0
		for _, v := range kept {
			if v.Blob != nil {
				asBlob++
			}
		}
		if asBlob != c.blobs || len(kept)-asBlob != c.left {
			t.Errorf("%s: %d blobs and %d inline, want %d and %d", c.name, asBlob, len(kept)-asBlob, c.blobs, c.left)
		}
	}
}

func TestKeepReportsVariable(t *testing.T) {
	s := blobs{}.store()
	s.PutBlob = func([]byte) (string, error) { return "", errors.New("disk full") }
	_, err := s.KeepScope(map[string]journal.Value{"report": {JSON: text(blobSize + 1)}})
	if err == nil || !strings.Contains(err.Error(), `variable "report"`) || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("error %v", err)
	}
}
