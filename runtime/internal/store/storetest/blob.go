package storetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
)

// A sweeper is a store that can delete blobs. Both implementations are.
type sweeper interface {
	SweepBlobs(keep func(digest string) bool) (removed int, bytes int64, err error)
}

var blobClauses = []clause{
	{name: "S6.1 a blob is read back by its digest", check: func(t *testing.T, s store.Store) {
		for _, data := range [][]byte{{}, []byte("a"), bytes.Repeat([]byte("ab"), 1<<20)} {
			digest, err := s.PutBlob(data)
			if err != nil {
				t.Fatal(err)
			}
			if sum := sha256.Sum256(data); digest != hex.EncodeToString(sum[:]) {
				t.Errorf("digest %q", digest)
			}
			got, err := s.Blob(digest)
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("blob of %d bytes: %d bytes, %v", len(data), len(got), err)
			}
		}
		if st := s.Stats(); st.Blobs != 3 || st.BlobBytes != 1+2<<20 || st.Commits != 0 {
			t.Errorf("stats %+v", st)
		}
	}},
	{name: "S6.2 putting a blob again changes nothing, also concurrently", check: func(t *testing.T, s store.Store) {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for i := range 10 {
					if _, err := s.PutBlob([]byte{byte(i)}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		before := s.Stats().Blobs
		digest, err := s.PutBlob([]byte{3})
		if err != nil || s.Stats().Blobs != before {
			t.Errorf("put again: %v, %d blobs, %d before", err, s.Stats().Blobs, before)
		}
		if got, err := s.Blob(digest); err != nil || !bytes.Equal(got, []byte{3}) {
			t.Errorf("blob: %v, %v", got, err)
		}
	}},
	{name: "S6.3 a malformed digest is refused, an unknown one not found", check: func(t *testing.T, s store.Store) {
		good, _ := s.PutBlob([]byte("a"))
		for _, digest := range []string{"", "ab", "../../etc/passwd", strings.ToUpper(good), strings.Repeat("/", 64), good + "0", good[:63] + "\x00"} {
			_, err := s.Blob(digest)
			wantIs(t, err, store.ErrInvalid)
		}
		_, err := s.Blob(strings.Repeat("0", 64))
		wantIs(t, err, store.ErrNotFound)
	}},
	{name: "S6.4 the caller may change a blob that it put or read", check: func(t *testing.T, s store.Store) {
		data := []byte("abc")
		digest, _ := s.PutBlob(data)
		data[0] = 'x'
		got, _ := s.Blob(digest)
		got[1] = 'y'
		if again, err := s.Blob(digest); err != nil || string(again) != "abc" {
			t.Errorf("blob %q, %v", again, err)
		}
	}},
	{name: "S6.5 a sweep removes unused blobs, except recent ones", check: func(t *testing.T, s store.Store) {
		sw := s.(sweeper)
		a, _ := s.PutBlob([]byte("a"))
		b, _ := s.PutBlob([]byte("bb"))
		c, _ := s.PutBlob([]byte("ccc"))
		keep := func(digest string) bool { return digest == a }
		sweep := func(wantRemoved int, wantBytes int64) {
			t.Helper()
			if n, size, err := sw.SweepBlobs(keep); n != wantRemoved || size != wantBytes || err != nil {
				t.Errorf("sweep: %d, %d bytes, %v, want %d, %d", n, size, err, wantRemoved, wantBytes)
			}
		}
		sweep(0, 0) // put since the sweep before the last one
		if _, err := s.PutBlob([]byte("ccc")); err != nil {
			t.Fatal(err)
		}
		sweep(1, 2)
		_, err := s.Blob(b)
		wantIs(t, err, store.ErrNotFound)
		for _, digest := range []string{a, c} {
			if _, err := s.Blob(digest); err != nil {
				t.Error(err)
			}
		}
		if again, err := s.PutBlob([]byte("bb")); err != nil || again != b {
			t.Errorf("put after the sweep: %q, %v", again, err)
		}
		if _, err := s.Blob(b); err != nil {
			t.Error(err)
		}
		sweep(1, 3)
	}},
}
