package javascript

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A Sum is the file engine.sum: the inputs from which the committed engine was built.
type Sum struct {
	Source string // of QuickJS, with its digest
	Tools  string // compiler and C library
	Glue   string // digest of our own files, see [GlueDigest]
	Engine string // digest of the module, unpacked
}

// String returns the file's text.
func (s Sum) String() string {
	return fmt.Sprintf("source: %s\ntools: %s\nglue: %s\nengine: %s\n", s.Source, s.Tools, s.Glue, s.Engine)
}

// ReadSum reads engine.sum in a folder.
func ReadSum(dir string) (Sum, error) {
	text, err := os.ReadFile(filepath.Join(dir, "engine.sum"))
	if err != nil {
		return Sum{}, err
	}
	var s Sum
	into := map[string]*string{"source": &s.Source, "tools": &s.Tools, "glue": &s.Glue, "engine": &s.Engine}
	for line := range strings.Lines(string(text)) {
		key, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		if !ok || into[key] == nil {
			return Sum{}, fmt.Errorf("read engine.sum: unknown line %q", line)
		}
		*into[key] = value
	}
	return s, nil
}

// GlueDigest returns the digest of our own sources of the engine in a folder.
func GlueDigest(dir fs.FS) (string, error) {
	var all bytes.Buffer
	for _, name := range []string{"glue.c", "prelude.js", "include/setjmp.h", "build/compile.go"} {
		text, err := fs.ReadFile(dir, name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&all, "%s %d\n%s", name, len(text), text)
	}
	return Digest(all.Bytes()), nil
}
