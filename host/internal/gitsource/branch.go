package gitsource

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
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

// CheckNewBranch is CheckBranch for a branch that is made for a ticket, a model or an agent. Where git resolves a name, a
// branch of that name comes before the branch of a remote, the beginning of an id and, while a merge is not
// under way, MERGE_HEAD: such a branch would have `git merge origin/main` of the user take other work than
// the user means. So it is refused, in whatever case, because file systems ignore that.
func CheckNewBranch(field, name string) error {
	if err := CheckBranch(field, name); err != nil {
		return err
	}
	if means := otherMeaning(name); means != "" {
		return Shadows(field, name, means)
	}
	return nil
}

// Shadows is the error of a branch whose name means something else.
func Shadows(field, name, means string) error {
	return &abi.Error{
		Code: abi.BadFields, Permanent: true, Field: field, Message: fmt.Sprintf("%s: a branch named %.100q would hide %s", field, name, means),
		Hint: "name another one, such as " + agentFolder + name[strings.LastIndex(name, "/")+1:],
	}
}

// agentFolder is how the branches that agents name begin.
const agentFolder = "work/"

// AgentMayName reports whether a model or an agent may name a branch so: below work. Git makes no branch beside a folder of its name,
// so that another one, such as release, would be in the way of release/1.0.
func AgentMayName(branch string) bool { return strings.HasPrefix(branch, agentFolder) }

// HidesNothing returns an error if the name of a branch that is to be made means something else in a
// repository: the branch of a remote, also one that is fetched later, a tag, the output of git describe. line executes
// git in the repository, and returns "" if git says no.
func HidesNothing(ctx context.Context, field, name string, line func(ctx context.Context, args ...string) (string, error)) error {
	remotes, err := line(ctx, "config", "--name-only", "--get-regexp", `^remote\..*\.(url|pushurl|fetch)$`)
	if err != nil {
		return err
	}
	for key := range strings.SplitSeq(remotes, "\n") {
		remote := key[:max(strings.LastIndex(key, "."), 0)]
		if remote = strings.TrimPrefix(remote, "remote."); remote != "" && strings.HasPrefix(strings.ToLower(name)+"/", strings.ToLower(remote)+"/") {
			return Shadows(field, name, "the branches of the remote "+remote)
		}
	}
	// Not rev-parse, which finds a commit for refs/heads/v1-0-g6f71928 without such a branch.
	branches, err := line(ctx, "for-each-ref", "--format=%(refname)", "refs/heads/"+name)
	if err != nil || slices.Contains(strings.Fields(branches), "refs/heads/"+name) {
		return err // it exists: the caller decides
	}
	other, err := line(ctx, "rev-parse", "--verify", "--quiet", name)
	if err == nil && other != "" {
		err = Shadows(field, name, "what the name means in the repository now, "+other)
	}
	return err
}

var (
	// idForm is what git takes for the beginning of an id.
	idForm = lazyregexp.New(`^[0-9a-f]{4,64}$`)
	// ownReference is the form of the references that git keeps beside HEAD.
	ownReference = lazyregexp.New(`^[A-Z_-]*HEAD$`)
	// ownReferences are those in lower case that exist today, with those of another form.
	ownReferences = []string{
		"head", "fetch_head", "orig_head", "merge_head", "cherry_pick_head", "revert_head", "rebase_head", "bisect_head",
		"auto_merge", "bisect_expected_rev", "notes_merge_partial", "notes_merge_ref", "merge_autostash", "stash",
	}
)

// otherMeaning returns what a name means without a branch of it, as far as the name shows; "" for nothing.
func otherMeaning(name string) string {
	lower := strings.ToLower(name)
	first, _, _ := strings.Cut(lower, "/")
	switch first {
	case "refs", "heads", "tags", "remotes", "worktrees", "main-worktree":
		return "references, whose full names begin so"
	case "origin", "upstream": // as remotes are called in clones that this machine does not see
		return "the branches of a remote"
	}
	switch {
	case idForm.MatchString(lower):
		return "the commit whose id begins so"
	case ownReference.MatchString(name), slices.Contains(ownReferences, lower):
		return "a reference that git keeps itself"
	case lower == DefaultBranch:
		return "the default branch of a copy of the repository"
	}
	return ""
}
