package content

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	stdhash "hash"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/host/internal/rootfs"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
)

// gitTimeout bounds what git is asked about one file.
const gitTimeout = 10 * time.Second

// wroteBy is what the repository of a file says about its content.
type wroteBy int

const (
	byUser    wroteBy = iota // an edit
	byGit                    // or it cannot be decided
	converted                // git may have converted it, by an attribute of the path
	unsure                   // git changes files just now
)

// writer returns who wrote a file. A checkout writes a file and the index of the repository,
// and converts contents in ways that the file does not show: by attributes, which it reads from
// the index and not from the work tree, by filters and by encodings. So the bytes of the file
// decide nothing. It is an edit of the user only while the index has content that counts, and the
// file has been changed since git wrote it: from content that counts, git can write other content.
func (f *Folder) writer(at place, path string, content []byte) wroteBy {
	name := filepath.Join(rootfs.EvalLinks(filepath.Dir(path)), filepath.Base(path))
	wrote := f.writerOf(at, name, content)
	if real := rootfs.EvalLinks(name); real != name && wrote == byUser { // a link to a file that git tracks
		wrote = f.writerOf(at, real, content)
	}
	return wrote
}

// writerOf asks every repository that the file is in. Where a folder was a submodule, the repository
// around it writes files into it, and git leaves the .git of the submodule.
func (f *Folder) writerOf(at place, path string, content []byte) wroteBy {
	wrote := byUser
	for _, dir := range repositoriesOf(filepath.Dir(path)) {
		switch w := f.writerIn(dir, at, path, content); w {
		case byGit, converted:
			return w
		case unsure:
			wrote = unsure
		}
	}
	return wrote
}

// repositoriesOf returns a folder in each repository that a folder without links is in, the
// innermost first.
func repositoriesOf(dir string) (list []string) {
	for top := gitexec.WorkTree(dir); top != ""; top = gitexec.WorkTree(dir) {
		list = append(list, dir)
		above := filepath.Dir(top)
		if above == top {
			break
		}
		dir = above
	}
	return list
}

// writerIn returns what the repository that a folder is in says about a file.
func (f *Folder) writerIn(dir string, at place, path string, content []byte) wroteBy {
	if f.opt.Git == "" {
		return byGit
	}
	ctx, cancel := context.WithTimeout(context.Background(), gitTimeout)
	defer cancel()
	r := repository{Runner: newGit(f.opt.Git), dir: dir}
	changing, err := r.openIndex(ctx)
	switch {
	case err != nil:
		return byGit
	case changing:
		return unsure
	}
	entries, err := r.tracked(ctx, path)
	if err != nil {
		return byGit
	}
	for _, e := range entries {
		if text, err := r.out(ctx, "", "cat-file", "blob", e.blob); err != nil || !at.of.has(at.key, []byte(text)) {
			return byGit
		}
		if info, err := os.Lstat(path); err != nil || e.writtenAt(info.ModTime()) {
			return byGit
		}
		// An edit of what git has converted has a time of its own.
		converts, err := r.converts(ctx, e.name)
		if err == nil && !converts && e.modified == noTime {
			converts, err = r.converted(ctx)
		}
		switch {
		case err != nil:
			return byGit
		case converts:
			return converted
		}
	}
	// A path that the index does not have, or has as it was trusted: git writes the content of
	// an object there when a user asks for it, as with "git restore --source".
	objects, err := r.out(ctx, strings.Join(objectNames(content), "\n")+"\n", "cat-file", "--batch-check")
	if err != nil {
		return byGit
	}
	for line := range strings.Lines(objects) {
		if !strings.HasSuffix(strings.TrimSpace(line), " missing") {
			return byGit
		}
	}
	return byUser
}

// A repository is asked from a folder of its work tree.
type repository struct {
	gitexec.Runner
	dir string

	// Set by openIndex.
	top  string // of the work tree
	lock string // index that a git has written and not put in its place yet, as a commit has it while hooks run; "" for none
}

// newGit returns a git that fetches nothing: a partial clone has what was checked out.
func newGit(program string) gitexec.Runner {
	return gitexec.Runner{Program: program, MaxOut: maxFile, Env: []string{"GIT_NO_LAZY_FETCH=1"}}
}

func (r *repository) out(ctx context.Context, stdin string, args ...string) (string, error) {
	a, err := r.Exec(ctx, r.dir, "", stdin, args...)
	switch {
	case err != nil:
		return "", err
	case a.Code != 0 || a.Cut:
		return "", gitexec.Fatal(args[0], a)
	}
	return a.Out, nil
}

// identPattern matches what the attribute ident writes into a file that git checks out.
var identPattern = lazyregexp.New(`\$Id:[^$\n]*\$`)

// stores reports whether a file, as git writes it, is an object of the repository: it is or was
// part of a commit, whatever git tracks now. Line ends and the attribute ident do not count.
func (r *repository) stores(ctx context.Context, content []byte) (bool, error) {
	names := objectNames(content)
	if plain := identPattern.ReplaceAllString(string(content), "$$Id$$"); plain != string(content) {
		names = append(names, objectNames([]byte(plain))...)
	}
	found, err := r.out(ctx, strings.Join(names, "\n"), "cat-file", "--batch-check")
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(found) {
		if !strings.HasSuffix(strings.TrimSpace(line), " missing") {
			return true, nil
		}
	}
	return false, nil
}

// openIndex finds the index. It reports whether a git holds the lock of it and has not written the
// new index: that one may have written files which no index has yet.
func (r *repository) openIndex(ctx context.Context) (locked bool, err error) {
	out, err := r.out(ctx, "", "rev-parse", "--show-toplevel", "--git-path", "index.lock")
	if err != nil {
		return false, err
	}
	top, lock, found := strings.Cut(strings.TrimSuffix(out, "\n"), "\n")
	if !found || strings.Contains(lock, "\n") {
		return false, errors.New("git: a path of the repository has a line end")
	}
	if lock = filepath.FromSlash(lock); !filepath.IsAbs(lock) {
		lock = filepath.Join(r.dir, lock)
	}
	r.top = rootfs.EvalLinks(filepath.FromSlash(top))
	info, err := os.Lstat(lock)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		r.lock = lock
	}
	return err == nil && info.Size() == 0, err
}

// An entry of an index.
type entry struct {
	blob, name string
	modified   string // time of the file when git wrote it or compared it with the blob: seconds:nanoseconds
}

// noTime is the time of an entry that git has made without looking at the file, as "git read-tree" and "git rm --cached" with
// "git reset" do. Nothing tells then whether the file is an edit or was converted by attributes that are gone.
const noTime = "0:0"

// writtenAt reports whether the file of the entry has the content that git wrote or compared, by the time of its
// modification. The size does not count: git sets it to 0 to compare a file again. Some programs write no nanoseconds,
// and some file systems have none.
func (e entry) writtenAt(modified time.Time) bool {
	seconds, nanoseconds, found := strings.Cut(e.modified, ":")
	exact := nanoseconds != "0" && modified.Nanosecond() != 0
	return !found || seconds == strconv.FormatInt(modified.Unix(), 10) && (!exact || nanoseconds == strconv.Itoa(modified.Nanosecond()))
}

// converts reports whether attributes of a path have git write other content than that of its blob. Attributes of line ends
// do not count: they change no text, and a module that they change is not edited.
func (r *repository) converts(ctx context.Context, name string) (bool, error) {
	top := *r
	top.dir = r.top
	out, err := top.out(ctx, "", "check-attr", "--cached", "-z", "filter", "ident", "working-tree-encoding", "--", name)
	if err != nil {
		return false, err
	}
	fields := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	for i := 2; i < len(fields); i += 3 { // path, attribute, value
		if fields[i] != "unspecified" && fields[i] != "unset" {
			return true, nil
		}
	}
	return false, nil
}

// converted reports whether any commit that the repository has, by a branch or by its reflogs, set or removed an attribute with which git
// writes other content than that of a blob.
func (r *repository) converted(ctx context.Context) (bool, error) {
	out, err := r.out(ctx, "", "log", "--all", "--reflog", "--full-history", "-m", "--text", "--no-ext-diff", "--no-textconv", "--no-renames",
		"--max-count=1", "--format=%H", "-G", "filter|ident|working-tree-encoding", "--", ":(top,icase,glob)**/.gitattributes")
	return out != "", err
}

// tracked returns what the index has for a path or below it, several entries of one file in the
// middle of a merge. Case does not count: the file system may not distinguish it.
func (r *repository) tracked(ctx context.Context, path string) (entries []entry, err error) {
	rel, inside := below(r.top, path)
	if !inside {
		return nil, fmt.Errorf("git: %s is not in the work tree %s", path, r.top)
	}
	list := []string{"ls-files", "--stage", "--debug", "-z", "--full-name", "--", ":(top,icase,literal)" + rel}
	out := ""
	if r.lock != "" { // before the index, which it may become
		next := *r
		next.Env = append(slices.Clone(r.Env), "GIT_INDEX_FILE="+r.lock)
		if out, err = next.out(ctx, "", list...); err != nil {
			return nil, err
		}
	}
	now, err := r.out(ctx, "", list...)
	if err != nil {
		return nil, err
	}
	out += now
	for one := range strings.SplitSeq(out, "\x00") {
		for strings.HasPrefix(one, "  ") { // lines about the entry before
			line, rest, _ := strings.Cut(one, "\n")
			if modified, is := strings.CutPrefix(line, "  mtime: "); is && len(entries) > 0 {
				entries[len(entries)-1].modified = modified
			}
			one = rest
		}
		what, name, found := strings.Cut(one, "\t")
		if fields := strings.Fields(what); found && len(fields) == 3 { // mode, object, stage
			entries = append(entries, entry{blob: fields[1], name: name})
		}
	}
	return entries, nil
}

// objectNames returns the names that git gives objects with this content: as it is, and with
// line ends converted.
func objectNames(content []byte) []string {
	var names []string
	for _, text := range [][]byte{content, bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))} {
		for _, h := range []stdhash.Hash{sha1.New(), sha256.New()} {
			fmt.Fprintf(h, "blob %d\x00", len(text))
			h.Write(text)
			names = append(names, hex.EncodeToString(h.Sum(nil)))
		}
	}
	return names
}
