package dispatch

import (
	"context"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
)

// MaxPending is how many firings a debounce collects.
const MaxPending = maxPending

// ForgetKeys deletes all names of firings, as if they had left their windows.
func ForgetKeys(ctx context.Context, db store.Store) error {
	var puts []store.Put
	err := db.Scan(bucketKeys, nil, nil, false, func(key, _ []byte) bool {
		puts = append(puts, store.Put{Bucket: bucketKeys, Key: append([]byte(nil), key...), Delete: true})
		return true
	})
	if err != nil {
		return err
	}
	return db.Enqueue(store.Batch{Puts: puts}).Wait(ctx)
}

// Stored counts the pairs in the buckets of triggers.
func Stored(t testing.TB, db store.Store) (n int) {
	t.Helper()
	for _, bucket := range Buckets() {
		if err := db.Scan(bucket, nil, nil, false, func(_, _ []byte) bool { n++; return true }); err != nil {
			t.Fatal(err)
		}
	}
	return n
}
