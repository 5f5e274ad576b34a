package gitsource

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// maxBranch is how many bytes the name of a branch has at most: the name of a file has 255 on
// most systems, and git makes one with .lock behind the name.
const maxBranch = 250

// ValidBranch reports whether a text can be the name of a branch: the rules are those of
// git check-ref-format --branch, without its forms such as @{-1} that stand for another branch.
// Such a name may have characters that a shell reads, such as ( and '.
func ValidBranch(name string) bool {
	if name == "" || name == "@" || name == "HEAD" || name[0] == '-' || len(name) > maxBranch || !utf8.ValidString(name) {
		return false
	}
	if strings.ContainsFunc(name, isControl) || strings.ContainsAny(name, ` ~^:?*[\`) {
		return false
	}
	if strings.Contains(name, "..") || strings.Contains(name, "@{") || strings.HasSuffix(name, ".") {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return true
}

// CheckBranch is ValidBranch with an error that names the field.
func CheckBranch(field, name string) error {
	if !ValidBranch(name) {
		return &abi.Error{
			Code: abi.BadFields, Permanent: true, Field: field, Message: fmt.Sprintf("%s: %.100q is not a valid name of a branch", field, name),
			Hint: "git check-ref-format --branch NAME says which names are",
		}
	}
	return nil
}
