package link

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/binary"
	"github.com/sentinel-runtime/sentinel/sdk/abitest/abidoc"
)

// TestKernelTable compares clause A1.7 with the kernel functions that a guest may
// import.
func TestKernelTable(t *testing.T) {
	if diff := cmp.Diff(kernelSignatures, abidoc.Map(t, "A1.7")); diff != "" {
		t.Errorf("sdk/ABI.md A1.7 (-code +table):\n%s", diff)
	}
}

// FuzzLink: the check of imports and exports does not panic for any module that a
// scan accepts.
func FuzzLink(f *testing.F) {
	files, err := filepath.Glob("../testdata/wat/*.wasm")
	if err != nil || len(files) == 0 {
		f.Fatal("no guests", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, wasm []byte) {
		m, err := binary.Scan(wasm, true)
		if err != nil {
			return
		}
		_, _ = Exports(m)
		_, _ = Imports(m, nil)
	})
}
