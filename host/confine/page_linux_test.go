package confine_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/confine"
)

var update = flag.Bool("update", false, "write the lists of CONFINEMENT.md")

// TestPage: the page for operators has the lists of this package.
func TestPage(t *testing.T) {
	const begin, end = "<!-- lists -->\n", "<!-- end of lists -->\n"
	const page = "../CONFINEMENT.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	have, tail, okEnd := strings.Cut(rest, end)
	if !ok || !okEnd {
		t.Fatalf("%s: the marks of the lists are missing", page)
	}
	want := confine.Page()
	switch {
	case have == want:
	case *update:
		if err := os.WriteFile(page, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s: the lists are not those of the package: go test ./host/confine -run TestPage -update", page)
	}
}
