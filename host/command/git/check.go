package git

import (
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// validRef holds revisions to names with the usual suffixes (HEAD~2,
// main@{upstream}). It keeps out options, ranges, search (:/text) and paths
// inside a commit (rev:path).
var validRef = name{lazyregexp.New(`^[\pL\pN_@][\pL\pN_./@{}^~+#=,-]*$`), 255}

// validBranch holds new names to what git itself allows, less the odd ones.
var validBranch = name{lazyregexp.New(`^[\pL\pN_][\pL\pN_./+#=,-]*$`), 255}

var validRemote = name{lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`), 100}

// A name is what a kind of name looks like and how many characters it has at
// most. The count is not in the expression, where a repeated Unicode class
// takes 20 MB and 15 ms of every start of the program.
type name struct {
	form *lazyregexp.Regexp
	most int
}

func (n name) MatchString(s string) bool {
	return len(s) <= utf8.UTFMax*n.most && utf8.RuneCountInString(s) <= n.most && n.form.MatchString(s)
}

// badField is the error for a value that git must never see.
func badField(field, value, problem string) error {
	return &abi.Error{Code: abi.BadFields, Field: field, Permanent: true, Message: fmt.Sprintf("git: field %q: %q %s", field, value, problem)}
}

// check refuses what might be read as an option, a URL or a place outside.
func (in request) check(workspace string) error {
	for field, value := range map[string]string{"base": in.Base, "ref": in.Ref} {
		if value != "" && (!validRef.MatchString(value) || strings.Contains(value, "..")) {
			return badField(field, value, "is not a name of a commit")
		}
	}
	if b := in.Branch; b != "" {
		if !validBranch.MatchString(b) || strings.Contains(b, "..") || strings.Contains(b, "//") || strings.Contains(b, "/.") ||
			strings.HasSuffix(b, "/") || strings.HasSuffix(b, ".") || strings.HasSuffix(b, ".lock") || strings.Contains(b, ".lock/") || b == "HEAD" {
			return badField("branch", b, "is not a name of a branch")
		}
	}
	if in.Remote != "" && !validRemote.MatchString(in.Remote) {
		return badField("remote", in.Remote, "is not a name of a remote; give the name of a configured one, never a URL")
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
