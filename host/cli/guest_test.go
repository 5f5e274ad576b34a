package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"
)

// guest writes a plugin that answers true, with the manifest in a file:
// guest OUT.wasm MANIFEST.json.
func guest(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: guest OUT.wasm MANIFEST.json")
	}
	code, err := os.ReadFile(plainGuest)
	ts.Check(err)
	place := fmt.Appendf(nil, "%-2048s", "MANIFEST")
	text := fmt.Appendf(nil, "%-2048s", bytes.TrimSpace([]byte(ts.ReadFile(args[1]))))
	if bytes.Count(code, place) != 1 || len(text) != len(place) {
		ts.Fatalf("the manifest does not fit into %s", plainGuest)
	}
	// Whole or not at all, as a build would: a server watches the folder.
	out := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(filepath.Dir(out), 0o755))
	ts.Check(os.WriteFile(out+".tmp", bytes.Replace(code, place, text, 1), 0o644))
	ts.Check(os.Rename(out+".tmp", out))
}

// plainGuest is a plugin of any manifest, see the text beside it.
var plainGuest = func() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	return dir + "/../../runtime/testdata/guests/plain.wasm"
}()
