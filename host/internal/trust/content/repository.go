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
	if gitexec.WorkTree(dir) == "" {
		return false
	}
	if f.opt.Git == "" {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), gitTimeout)
	defer cancel()
	git := gitexec.Runner{Program: f.opt.Git}
	name := filepath.Base(path)
	attributes, err := git.Exec(ctx, dir, "", "", "check-attr", "-z", "filter", "working-tree-encoding", "ident", "text", "crlf", "eol", "--", name)
	if err != nil || attributes.Code != 0 || isConverted(attributes.Out, content) {
		return true
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

// isConverted reports whether the attributes of a file, as check-attr prints them, have git
// write this content for objects that cannot be computed from it.
func isConverted(attributes string, content []byte) bool {
	has := map[string]string{}
	for fields := strings.Split(attributes, "\x00"); len(fields) >= 3; fields = fields[3:] {
		if fields[2] != "unspecified" && fields[2] != "unset" {
			has[fields[1]] = fields[2]
		}
	}
	switch {
	case has["filter"] != "" || has["working-tree-encoding"] != "":
		return true
	case has["ident"] != "" && bytes.Contains(content, []byte("$Id:")): // the object may have any text there
		return true
	}
	// Of a text some line ends of the object may be CRLF already. With "auto" git converts none
	// of such an object.
	text := has["text"] == "set" || has["crlf"] == "set" || has["eol"] != "" && has["text"] != "auto"
	return text && bytes.Contains(content, []byte("\r\n"))
}

// objectNames returns the names that git gives objects from which it writes a file with
// this content: as it is, and with line ends converted.
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
