package runtime_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// keepState makes a state folder with some runs in it and closes it.
func keepState(t testing.TB, runs int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	rt, err := runtime.Open(within(t), runtime.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for i := range runs {
		data := fmt.Appendf(nil, `{"n":%d,"fill":%q}`, i, strings.Repeat("x", 500))
		err := rt.Documents().Update(within(t), func(tx *runtime.DocumentTx) error {
			_, err := tx.Put(within(t), "things", fmt.Sprintf("%05d", i), data, 0)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// unclean makes a state folder look as if its owner had been killed.
func unclean(t testing.TB, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "store.open"), []byte("999999 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// spoil clears the second half of the store's pages.
func spoil(t testing.TB, dir string) (file string) {
	t.Helper()
	file = filepath.Join(dir, "store.db")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	clear(b[4096*3:])
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A damaged store is a message and a way out, after a crash as after a clean
// close, and stays as it is.
func TestOpenDamaged(t *testing.T) {
	for _, crashed := range []bool{true, false} {
		t.Run(fmt.Sprintf("crashed %t", crashed), func(t *testing.T) {
			dir := keepState(t, 50)
			file := spoil(t, dir)
			if crashed {
				unclean(t, dir)
			}
			before, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, err = runtime.Open(within(t), runtime.Options{Dir: dir})
			e := abi.As(err)
			if !errors.Is(err, runtime.ErrDamaged) || e == nil || !strings.Contains(e.Message, file) || !strings.Contains(e.Message, "page") || !strings.Contains(e.Hint, "sentinel recover") {
				t.Fatalf("%v, %+v", err, e)
			}
			if err := runtime.CheckStore(dir); !errors.Is(err, runtime.ErrDamaged) {
				t.Errorf("check: %v", err)
			}
			if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
				t.Error("the damaged file was changed")
			}
		})
	}
}

// While a process has the store open there is nothing to check.
func TestCheckStoreHeld(t *testing.T) {
	dir := t.TempDir()
	if err := runtime.CheckStore(dir); err != nil {
		t.Errorf("an empty folder: %v", err)
	}
	rt, err := runtime.Open(within(t), runtime.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	if err := runtime.CheckStore(dir); !errors.Is(err, runtime.ErrHeld) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("%v", err)
	}
	begin := time.Now()
	if _, err := runtime.Open(within(t), runtime.Options{Dir: dir}); !errors.Is(err, runtime.ErrHeld) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("a second owner: %v", err)
	}
	t.Logf("refused after %s", time.Since(begin))
}
