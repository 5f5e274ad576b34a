package git

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/gitsource"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// revision is a name with the usual suffixes: HEAD~2, main@{upstream}, v1^{commit}.
var revision = lazyregexp.New(`^(.*?)(?:~[0-9]*|\^[0-9]*|\^\{[a-z]*\}|@\{[\pL\pN_./+-]*\})*$`)

var validRemote = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$`)

// isRevision reports whether a text is the name of a branch, tag or commit, with suffixes or
// without. It keeps out options, ranges, search (:/text) and paths inside a commit (rev:path).
func isRevision(text string) bool {
	parts := revision.FindStringSubmatch(text)
	if text == "" || parts == nil || len(text) > maxRevision {
		return false
	}
	name := parts[1]
	return name == "" && strings.HasPrefix(text, "@{") || name == "HEAD" || name == "@" || gitsource.ValidBranch(name)
}

// maxRevision bounds a name with its suffixes, in bytes.
const maxRevision = 500

// badField is the error for a value that git must never see.
func badField(field, value, problem string) error {
	return &abi.Error{Code: abi.BadFields, Field: field, Permanent: true, Message: fmt.Sprintf("git: field %q: %q %s", field, value, problem)}
}

// check refuses what might be read as an option, a URL or a place outside.
func (in request) check(workspace string) error {
	for field, value := range map[string]string{"base": in.Base, "ref": in.Ref} {
		if value != "" && !isRevision(value) {
			return badField(field, value, "is not a name of a commit")
		}
	}
	if b := in.Branch; b != "" && !gitsource.ValidBranch(b) {
		return badField("branch", b, "is not a name of a branch")
	}
	if in.Remote != "" && !validRemote.MatchString(in.Remote) {
		return badField("remote", in.Remote, "is not a name of a remote; give the name of a configured one, never a URL")
	}
	if err := checkFormat(in.Format); err != nil {
		return err
	}
	for i, p := range in.Paths {
		rel := p
		if filepath.IsAbs(p) {
			var err error
			if rel, err = filepath.Rel(workspace, p); err != nil {
				return badField("paths", p, "is outside the workspace")
			}
		}
		switch {
		case p == "" || strings.ContainsRune(p, 0) || strings.HasPrefix(p, ":"):
			return badField("paths", p, "is not a path")
		case !filepath.IsLocal(rel):
			return &abi.Error{Code: abi.Denied, Field: "paths", Permanent: true, Message: fmt.Sprintf("git: path %q: outside the workspace", p)}
		}
		in.Paths[i] = filepath.ToSlash(rel)
	}
	return nil
}

// logFormats are git's own forms of a log.
var logFormats = []string{"oneline", "short", "medium", "full", "fuller", "reference"}

// logPlaceholder are the placeholders of a text: hashes, parents, author, committer,
// names, message. Others execute programs that the repository configures (%G?), or make
// an answer of any size (%<(n)).
var logPlaceholder = lazyregexp.New(`^%(?:[HhTtPpDdsbBn%]|[ac][nelNEL]|[ac][dDrtiIsh])`)

// checkFormat refuses what is neither a form nor a text with known placeholders.
func checkFormat(format string) error {
	if format == "" || slices.Contains(logFormats, format) {
		return nil
	}
	if !strings.Contains(format, "%") {
		return badField("format", format, "is not a form of git; want "+strings.Join(logFormats, ", ")+", or a text with placeholders such as \"%h %an %s\"")
	}
	if len(format) > 1000 || strings.ContainsRune(format, 0) {
		return badField("format", format[:min(len(format), 80)], "is longer than 1,000 bytes or has a zero byte")
	}
	for rest := format; ; {
		i := strings.IndexByte(rest, '%')
		if i < 0 {
			return nil
		}
		known := logPlaceholder.FindStringIndex(rest[i:])
		if known == nil {
			return badField("format", format, fmt.Sprintf("has the unknown placeholder %q; want %%H %%h %%T %%t %%P %%p, %%an %%ae %%ad %%ar %%aI and the same with c, %%D %%s %%b %%B %%n %%%%", rest[i:i+min(len(rest)-i, 3)]))
		}
		rest = rest[i+known[1]:]
	}
}
