package content

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	stdhash "hash"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/host/internal/rootfs"
)

// gitTimeout bounds one question to git.
const gitTimeout = 10 * time.Second

// fromRepository reports whether a file has content that git may have written: content
// that the repository of the file has as an object. Fetched objects are in the repository
// before git changes the file, so a file is never seen with new content too early. What
// cannot be decided counts as written by git.
func (f *Folder) fromRepository(path string, content []byte) bool {
	dir := rootfs.EvalLinks(filepath.Dir(path))
	if !inRepository(dir) {
		return false
	}
	if f.opt.Git == "" {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), gitTimeout)
	defer cancel()
	git := gitexec.Runner{Program: f.opt.Git}
	name := filepath.Base(path)
	// A filter or an encoding makes the file differ from its object.
	attributes, err := git.Exec(ctx, dir, "", "", "check-attr", "-z", "filter", "working-tree-encoding", "--", name)
	if err != nil || attributes.Code != 0 {
		return true
	}
	for fields := strings.Split(attributes.Out, "\x00"); len(fields) >= 3; fields = fields[3:] {
		if value := fields[2]; value != "unspecified" && value != "unset" {
			return true
		}
	}
	objects, err := git.Exec(ctx, dir, "", strings.Join(objectNames(content), "\n")+"\n", "cat-file", "--batch-check")
	if err != nil || objects.Code != 0 {
		return true
	}
	for line := range strings.Lines(objects.Out) {
		if !strings.HasSuffix(strings.TrimSpace(line), " missing") {
			return true
		}
	}
	return false
}

// inRepository reports whether dir or a folder above has a repository.
func inRepository(dir string) bool {
	for {
		if exists(filepath.Join(dir, ".git")) {
			return true
		}
		above := filepath.Dir(dir)
		if above == dir {
			return false
		}
		dir = above
	}
}

// expandedIdent is what the attribute ident makes of $Id$.
var expandedIdent = regexp.MustCompile(`\$Id:[^$\n]*\$`)

// objectNames returns the names that git gives objects from which it writes a file with
// this content: as it is, with line ends converted, and with $Id$ expanded.
func objectNames(content []byte) []string {
	var names []string
	for _, text := range [][]byte{content, bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))} {
		for _, text := range [][]byte{text, expandedIdent.ReplaceAll(text, []byte("$$Id$$"))} {
			for _, h := range []stdhash.Hash{sha1.New(), sha256.New()} {
				fmt.Fprintf(h, "blob %d\x00", len(text))
				h.Write(text)
				names = append(names, hex.EncodeToString(h.Sum(nil)))
			}
		}
	}
	return names
}
