package gitexectest

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// standIn does what tests need of git-lfs: its filters, and sending objects to a folder. Like
// git-lfs it keeps objects in the git directory, and also finds those of a repository that
// objects are borrowed from.
const standIn = `#!/bin/sh
set -e
store=$(git config lfs.storage || echo "$(git rev-parse --path-format=absolute --git-common-dir)/lfs")/objects
find() {
	for dir in "$store" $(sed 's,$,/../lfs/objects,' "$(git rev-parse --git-path objects)/info/alternates" 2>/dev/null); do
		if [ -f "$(at "$dir" $1)" ]; then
			at "$dir" $1
			return
		fi
	done
	return 2
}
at() { echo "$1/$(echo $2 | cut -c1-2)/$(echo $2 | cut -c3-4)/$2"; }
case $1 in
clean)
	new=$(mktemp)
	cat >"$new"
	oid=$(sha256sum <"$new" | cut -c1-64)
	to=$(at "$store" $oid)
	mkdir -p "$(dirname "$to")"
	printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n' $oid $(wc -c <"$new")
	mv "$new" "$to"
	;;
smudge)
	oid=$(sed -n 's/^oid sha256://p')
	file=$(find $oid)
	cat "$file"
	;;
push)
	to=$3
	case $to in
	file://*) to=${to#file://} ;;
	*) to=$(git remote get-url "$to") ;;
	esac
	shift 3
	for oid; do
		new=$(at "$to/lfs/objects" $oid)
		mkdir -p "$(dirname "$new")"
		file=$(find $oid)
		cp "$file" "$new"
	done
	;;
*) exit 3 ;;
esac
`

// LFS gives a test git-lfs, the real one or a stand-in, and returns its filters as git lfs
// install configures them.
func LFS(t *testing.T, real bool) (settings [][2]string) {
	t.Helper()
	settings = [][2]string{{"filter.lfs.clean", "git-lfs clean -- %f"}, {"filter.lfs.smudge", "git-lfs smudge -- %f"}, {"filter.lfs.required", "true"}}
	if real {
		if testing.Short() {
			t.Skip("-short: the stand-in of git-lfs is tested alone")
		}
		if _, err := exec.LookPath("git-lfs"); err != nil {
			t.Skip("git-lfs is not on this machine: the stand-in is tested alone")
		}
		return append(settings, [2]string{"filter.lfs.process", "git-lfs filter-process"})
	}
	if _, err := exec.LookPath("sha256sum"); err != nil || runtime.GOOS == "windows" {
		t.Skip("the stand-in of git-lfs needs a shell and sha256sum")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "git-lfs"), []byte(standIn), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return settings
}

// WithoutLFS takes git-lfs away: PATH has git alone.
func WithoutLFS(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	git, err := exec.LookPath("git")
	if err == nil {
		err = os.Symlink(git, filepath.Join(dir, "git"))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
}

// OtherServer returns a file .lfsconfig that names a server, which no git-lfs may ask.
func OtherServer(t *testing.T) (text string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("git-lfs asks the server that a branch names: %s %s", r.Method, r.URL)
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(s.Close)
	return "[lfs]\n\turl = " + s.URL + "/a\n\tpushurl = " + s.URL + "/b\n[remote \"origin\"]\n\tlfsurl = " + s.URL + "/c\n\tlfspushurl = " + s.URL + "/d\n"
}

// LFSObjects returns the names of the objects in the git directory dir.
func LFSObjects(t *testing.T, dir string) (names []string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "lfs", "objects", "??", "??", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		names = append(names, filepath.Base(path))
	}
	return names
}

// ConfigText writes settings as a file of git's configuration.
func ConfigText(settings [][2]string) string {
	var text strings.Builder
	for _, s := range settings {
		part := strings.SplitN(s[0], ".", 3)
		text.WriteString("[" + part[0] + " \"" + part[1] + "\"]\n\t" + part[2] + " = " + s[1] + "\n")
	}
	return text.String()
}
