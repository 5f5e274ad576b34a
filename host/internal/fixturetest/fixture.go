// Package fixturetest unpacks the state folders of earlier versions in host/testdata/state for tests.
package fixturetest

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Unpack unpacks the .sentinel folder of a fixture into a project, with the modules that fixtures share
// in the folder modules beside it.
func Unpack(t *testing.T, fixture, project string) {
	t.Helper()
	for r := tar.NewReader(open(t, fixture)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(project, h.Name)
		if h.Typeflag != tar.TypeDir {
			write(t, path, r)
		} else if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	modules, err := filepath.Glob(filepath.Join(filepath.Dir(fixture), "modules", "*.gz"))
	if err != nil || len(modules) == 0 {
		t.Fatalf("no modules: %v", err)
	}
	for _, m := range modules {
		digest := strings.TrimSuffix(filepath.Base(m), ".gz")
		write(t, filepath.Join(project, ".sentinel", "state", "blobs", digest[:2], digest[2:]), open(t, m))
	}
}

// open opens a compressed file until the test ends.
func open(t *testing.T, file string) io.Reader {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// write writes a private file and its folder.
func write(t *testing.T, path string, from io.Reader) {
	t.Helper()
	text, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
