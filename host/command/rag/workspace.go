package rag

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/internal/codeindex"
	"github.com/sentinel-runtime/sentinel/host/internal/filewalk"
	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/host/internal/rootfs"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/glob"
)

// Limits of what is read.
const (
	maxDepth = 32                // levels of folders
	maxFile  = codeindex.MaxFile // bytes of a file
)

// workspace is the folder that one context is built from. The caller closes it.
//
// # Concurrency
//
// A workspace must not be used concurrently.
type workspace struct {
	*rootfs.Tree
	opt Options
	// visible is [Request.Visible].
	visible func(string) string
	rules   command.FileRules
	index   *codeindex.Index // nil until it is opened
	listed  bool
	list    []item // sorted by path
	more    bool   // the list ended at a limit
}

// An item is a file or folder of the workspace. Links and other kinds of files are
// not items.
type item struct {
	path   string
	folder bool
}

// openWorkspace opens a workspace without following links below base, see [command.Placed].
func openWorkspace(base, dir string, opt Options) (*workspace, error) {
	if !filepath.IsAbs(dir) {
		return nil, abi.New(abi.Internal, fmt.Sprintf("open workspace %q: not an absolute path", dir))
	}
	tree, err := command.OpenPlaced(base, dir, rootfs.Rules{Outside: "outside the workspace"})
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	return &workspace{Tree: tree, opt: opt, rules: opt.Rules.In(dir)}, nil
}

// Close closes the folder and its index.
func (w *workspace) Close() error {
	var err error
	if w.index != nil {
		err = w.index.Close()
	}
	return errors.Join(err, w.Tree.Close())
}

// openIndex opens the index of the workspace. It leaves out ignored files, secret files
// and generated folders.
func (w *workspace) openIndex(ctx context.Context) (err error) {
	if w.index != nil {
		return nil
	}
	w.index, err = codeindex.Open(ctx, codeindex.Options{
		Root: w.Root(), Dir: w.opt.IndexDir, Git: gitexec.LookPath(), Logger: w.opt.Logger,
		Skip: func(name string, folder bool) bool {
			return w.secret(name) || folder && slices.Contains(generatedFolders, plainName(path.Base(name)))
		},
		Accept: func(name string, data []byte) bool { return !isBinary(data) && !w.rules.MatchContent(name, data) },
		Policy: fmt.Sprintf("%s %q %q", w.rules.Fingerprint(), hiddenFolders, generatedFolders),
	})
	return err
}

// items lists the workspace once.
func (w *workspace) items(ctx context.Context) ([]item, error) {
	if w.listed {
		return w.list, nil
	}
	if err := w.openIndex(ctx); err != nil {
		return nil, err
	}
	files, complete, err := w.index.Files(ctx)
	if err != nil {
		return nil, err
	}
	folders := map[string]bool{".": true}
	for _, name := range files {
		w.list = append(w.list, item{name, false})
		for dir := path.Dir(name); !folders[dir]; dir = path.Dir(dir) {
			folders[dir] = true
			w.list = append(w.list, item{dir, true})
		}
	}
	slices.SortFunc(w.list, func(a, b item) int { return filewalk.Compare(a.path, b.path) })
	w.more, w.listed = w.more || !complete, true
	return w.list, nil
}

// words returns the files and which words they have, as of now.
func (w *workspace) words(ctx context.Context, words []string) (codeindex.Result, error) {
	if err := w.openIndex(ctx); err != nil {
		return codeindex.Result{}, err
	}
	_, complete, err := w.index.Refresh(ctx)
	if err != nil {
		return codeindex.Result{}, err
	}
	w.more = w.more || !complete
	found, err := w.index.Search(ctx, words)
	if err != nil || w.visible == nil {
		return found, err
	}
	err = w.forget(ctx, &found, words)
	return found, err
}

// maxCompared bounds the files that are read to compare a query with what the caller sees of them,
// in bytes.
const maxCompared = 64 << 20

// forget removes what only the values of secrets have of a query: the index has the words of whole
// files, and finds them by their beginnings, so that a caller could spell out a secret. Files beyond
// maxCompared count as without the words.
func (w *workspace) forget(ctx context.Context, found *codeindex.Result, words []string) error {
	clear(found.Counts)
	left := maxCompared
	for i := range found.Texts {
		t := &found.Texts[i]
		if t.Words == 0 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if left <= 0 {
			t.Words, w.more = 0, true
			continue
		}
		text, err := w.text(t.Path)
		if err != nil {
			t.Words = 0 // deleted since, or a file with secrets
			continue
		}
		left -= len(text)
		low := strings.ToLower(text)
		for j, word := range words {
			switch {
			case t.Words>>j&1 == 0:
			case strings.Contains(low, word):
				found.Counts[j]++
			default:
				t.Words &^= 1 << j
			}
		}
	}
	return nil
}

// visible returns the path of a file as results have it, for the comparison with a glob.
func (o Options) visible(name string) string {
	if o.Rules.Redact == nil {
		return name
	}
	return string(o.Rules.Redact([]byte(name)))
}

func parseGlobs(patterns []string) ([]glob.Pattern, error) {
	const most = 100 // each file is compared with all of them
	if len(patterns) > most {
		return nil, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "paths", Message: fmt.Sprintf("paths: %d patterns, at most %d are compared", len(patterns), most)}
	}
	var globs []glob.Pattern
	for _, text := range patterns {
		p, err := glob.Parse(text)
		if err != nil {
			return nil, &abi.Error{
				Code: abi.BadFields, Permanent: true, Field: "paths",
				Message: fmt.Sprintf("build context: path %.80q: %v", text, err), Hint: "`sentinel help globs` has the syntax",
			}
		}
		globs = append(globs, p)
	}
	return globs, nil
}

// Reasons for not showing a file.
var (
	errSecret = errors.New("never part of a context: it looks like a secret")
	errLink   = errors.New("is a link, or behind one")
	errFolder = errors.New("is a folder")
	errLarge  = fmt.Errorf("is larger than %d bytes", maxFile)
	errBinary = errors.New("is binary")
)

// text reads a file that may be shown, by its path in the workspace.
func (w *workspace) text(name string) (string, error) {
	if w.secret(name) {
		return "", errSecret
	}
	data, err := w.read(name)
	switch {
	case err != nil:
		return "", err
	case isBinary(data):
		return "", errBinary
	case w.rules.MatchContent(name, data):
		return "", errSecret
	}
	text := clean(string(data))
	if w.visible != nil {
		text = w.visible(text)
	}
	return text, nil
}

// read reads a regular file. It refuses links in every component of the path, also
// those that stay inside, because a link could give a secret file another name.
func (w *workspace) read(name string) ([]byte, error) {
	p, err := w.Resolve(name, false)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	switch {
	case p.Path != name:
		return nil, errLink
	case p.Info != nil && p.Info.IsDir():
		return nil, errFolder
	}
	f, info, err := w.OpenFile(p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > maxFile {
		return nil, errLarge
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		return nil, errLarge
	}
	return data, err
}
