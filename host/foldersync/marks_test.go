package foldersync

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMarks: the newest word about a file counts, also over many starts, and the
// file does not grow for ever.
func TestMarks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m")
	m, err := openMarks(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 2500 { // two compactions
		one := mark{ID: "a", Digest: fmt.Sprint(n), Revision: n}
		lines := []line{{File: "a", Mark: &one}}
		if n == 100 {
			lines = append(lines, line{File: "b", Mark: &mark{ID: "b"}}, line{Types: "t"})
		}
		if n == 200 {
			lines = append(lines, line{File: "b"})
		}
		if err := m.write(lines...); err != nil {
			t.Fatal(err)
		}
	}
	m.close()
	if info, err := os.Stat(path); err != nil || info.Size() > 100_000 || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has %d bytes and rights %v, %v", info.Size(), info.Mode(), err)
	}
	again, err := openMarks(path)
	if err != nil {
		t.Fatal(err)
	}
	defer again.close()
	want := map[string]mark{"a": {ID: "a", Digest: "2499", Revision: 2499}}
	if diff := cmp.Diff(want, again.byKey); diff != "" || again.types != "t" {
		t.Errorf("marks (-want +got):\n%s types %q", diff, again.types)
	}
}

// FuzzMarks: whatever a damaged file says, reading returns, and what was read is
// what is written and read again.
func FuzzMarks(f *testing.F) {
	f.Add([]byte(`{"file":"/a","mark":{"id":"a","digest":"d","revision":1,"hash":"h"}}` + "\n" + `{"types":"t"}` + "\n" + `{"file":"/a"`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m := &marks{byKey: map[string]mark{}}
		m.read(raw)
		path := filepath.Join(t.TempDir(), "m")
		out := &marks{path: path, byKey: m.byKey, types: m.types}
		if err := out.compact(); err != nil {
			t.Fatal(err)
		}
		out.close()
		again, err := openMarks(path)
		if err != nil {
			t.Fatal(err)
		}
		defer again.close()
		if diff := cmp.Diff(m.byKey, again.byKey); diff != "" || m.types != again.types {
			t.Fatalf("read again (-first +second):\n%s", diff)
		}
	})
}
