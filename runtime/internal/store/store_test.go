package store_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store/storetest"
)

func TestMain(m *testing.M) {
	if childMain() || failWritesMain() || migrateMain() {
		return
	}
	goleak.VerifyTestMain(m)
}

func TestDB(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, t.TempDir()) })
}

func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return store.NewMemory() })
}

func open(t testing.TB, dir string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return db
}
