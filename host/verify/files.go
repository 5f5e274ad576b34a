package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
)

// maxFile is the most that is read of one file, in bytes.
const maxFile = 32 << 20

// readInside reads a file of the checkout. Symbolic links may not lead outside.
func readInside(root *os.Root, name string) ([]byte, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // a pipe would wait for a writer
		return nil, errors.New("is not a regular file")
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("has %d bytes, and at most %d are read", info.Size(), maxFile)
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// Programs of the work may still be executed, and put a pipe in its place.
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, errors.New("is not a regular file"))
	}
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// secret reports whether the author of the criteria may not know what is in a file. The author
// commits links, so the file that one leads to counts.
func (s *session) secret(name string) bool {
	if s.job.ByPerson || s.v.opt.Secret == nil {
		return false
	}
	top, err := filepath.EvalSymlinks(s.checkout.tree)
	if err != nil {
		return true
	}
	path, err := filepath.EvalSymlinks(top + string(filepath.Separator) + name) // not joined: .. is behind links
	if err != nil {
		return false // the check says that it is not there
	}
	rel, err := filepath.Rel(top, path)
	if err != nil || !filepath.IsLocal(rel) {
		return true
	}
	data, _ := readInside(s.root, name) // what cannot be read is for the check to say
	return s.v.opt.Secret(filepath.ToSlash(rel), data)
}

// refuseSecret is the result of a check that would tell what is in a file with secrets.
func refuseSecret(name string) CheckResult {
	return skip(Refused, "%s: the criteria of an agent do not look into files that hold secrets: a person has to write this check", quote(name))
}

// unreadable says why a file could not be read.
func unreadable(name string, err error) string {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return "File not found: " + name
	}
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err
	}
	return fmt.Sprintf("%s: %v", name, err)
}

// visible returns the text of a file as the author of the criteria may see it: the results of checks
// would confirm the value of a secret piece by piece.
func (s *session) visible(text []byte) []byte {
	if s.job.ByPerson {
		return text
	}
	return []byte(s.v.opt.Redact(string(text)))
}

func (c *fileCheck) run(root *os.Root, visible func([]byte) []byte) (status, message string) {
	name := strings.TrimSuffix(c.Path, "/")
	if len(c.Contains) == 0 {
		if _, err := root.Stat(name); err != nil {
			return Failed, unreadable(c.Path, err)
		}
		return Passed, "File exists: " + c.Path
	}
	text, err := readInside(root, name)
	if err != nil {
		return Failed, unreadable(c.Path, err)
	}
	text = visible(text)
	for _, want := range c.Contains {
		if !bytes.Contains(text, []byte(want)) {
			return Failed, fmt.Sprintf("Missing pattern: %s", quote(want))
		}
	}
	return Passed, "File exists: " + c.Path
}

// maxMatching bounds the work of one pattern, as instructions times bytes of the file: more
// than a minute for the slowest patterns. A usual one has less than 100 instructions.
const maxMatching = 4_000_000_000

func (c *patternCheck) run(ctx context.Context, root *os.Root, visible func([]byte) []byte) (status, message string) {
	text, err := readInside(root, c.File)
	if err != nil {
		// A file that is not there has no match either, and a typing error in its
		// name would pass then.
		return Failed, unreadable(c.File, err)
	}
	text = visible(text)
	if size := c.expr.Size(); int64(size)*int64(len(text)) > maxMatching {
		return Failed, fmt.Sprintf("%s: has %d bytes, and a pattern that compiles to %d instructions reads at most %d: %s", c.File, len(text), size, maxMatching/size, quote(c.Pattern))
	}
	place, err := c.expr.FindIndex(ctx, text)
	if err != nil { // of the check's time limit: the verification's own end is noticed by its caller
		return Failed, fmt.Sprintf("Pattern: no end in %s within the time limit: %s", c.File, quote(c.Pattern))
	}
	want := c.ShouldMatch == nil || *c.ShouldMatch
	switch {
	case place == nil && want:
		return Failed, fmt.Sprintf("Pattern not found in %s: %s", c.File, quote(c.Pattern))
	case place == nil:
		return Passed, fmt.Sprintf("Pattern is absent from %s: %s", c.File, quote(c.Pattern))
	}
	line := 1 + bytes.Count(text[:place[0]], []byte("\n"))
	if want {
		return Passed, fmt.Sprintf("Pattern found in %s:%d: %s", c.File, line, quote(c.Pattern))
	}
	return Failed, fmt.Sprintf("Pattern must not match, but does in %s:%d: %s", c.File, line, quote(c.Pattern))
}

// quote returns a text of an author for a message: cut, without control characters.
func quote(text string) string {
	const most = 200
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, textcut.Mark(text, most))
}
