package git

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestReadStatus(t *testing.T) {
	text := strings.Join([]string{
		"# branch.oid 1234", "# branch.head main", "# branch.upstream origin/main", "# branch.ab +2 -1",
		"1 M. N... 100644 100644 100644 a b with space.txt", "2 R. N... 100644 100644 100644 a b R100 new name", "old name",
		"u UU N... 100644 100644 100644 100644 a b c both.txt", "? new.txt", "! ignored", "1 broken", "",
	}, "\x00")
	var got Result
	readStatus(text, &got)
	want := Result{
		Hash: "1234", Branch: "main", Upstream: "origin/main", Ahead: 2, Behind: 1,
		Files: []File{
			{Path: "with space.txt", Staged: "M"}, {Path: "new name", From: "old name", Staged: "R"}, {Path: "both.txt", Staged: "U", Changed: "U"}, {Path: "new.txt", Changed: "?"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestLocal(t *testing.T) {
	for url, want := range map[string]bool{
		"/srv/x.git": true, "../x.git": true, "x.git": true, "file:///srv/x.git": true, "./a:b": true,
		"git@host:x.git": false, "host:x": false, "https://host/x": false, "ssh://host/x": false, "ext::sh": false,
	} {
		if local(url) != want {
			t.Errorf("%q: local is %v", url, !want)
		}
	}
}

func FuzzParsers(f *testing.F) {
	f.Add("1 M. N... 1 1 1 a b c.txt\x002 R. N... 1 1 1 a b R1 n\x00o")
	f.Add("1\t2\ta.txt\x001\t2\t\x00a\x00b")
	f.Add("2 R. N... 1 1 1 a b R1 n")
	f.Fuzz(func(t *testing.T, text string) {
		var r Result
		readStatus(text, &r)
		files, _, _ := readNumstat(text)
		for _, file := range append(files, r.Files...) {
			if !utf8.ValidString(file.Path) {
				t.Fatalf("%q gave the path %q", text, file.Path)
			}
		}
		if cut, over := fit(text, 100); jsonSize(cut) > 100 || !over && cut != strings.ToValidUTF8(text, "\uFFFD") {
			t.Fatalf("%q became %q", text, cut)
		}
	})
}
