package gitexec

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// locked is what git says of a lock that another git holds, or has left, in lower case.
const locked = ".lock': file exists"

// Locked reports whether a git failed, here or on a remote, because another one holds a
// lock. It may succeed later.
func Locked(a Answer) bool { return strings.Contains(strings.ToLower(a.Err), locked) }

// Quote makes one word of a shell command of a text.
func Quote(text string) string { return termtext.Quote(text) }

// Fatal gives the error of a git that could not do its work.
func Fatal(operation string, a Answer) error {
	if e := Refusal(operation, a); e != nil {
		return e
	}
	text := cmp.Or(strings.TrimSpace(a.Err), strings.TrimSpace(a.Out))
	text = strings.ReplaceAll(text, Literal, "") // the caller gave a path
	e := &abi.Error{Code: abi.Internal, Message: fmt.Sprintf("git %s: exit code %d: %s", operation, a.Code, textcut.Mark(text, 2<<10))}
	lower := strings.ToLower(text)
	for _, c := range causes {
		if strings.Contains(lower, c.text) {
			e.Code, e.Hint, e.Permanent = c.code, c.hint, c.code != abi.Unavailable
			break
		}
	}
	return e
}

// Refusal gives the error of a git that refuses its work for a reason that users often meet,
// and nil for others. Its message says it without git's words, which may have
// lines of files.
func Refusal(operation string, a Answer) *abi.Error {
	for _, r := range refusals {
		if found := r.words.FindStringSubmatch(a.Err); found != nil {
			what := textcut.Mark(strings.TrimSuffix(found[1], "/"), 500)
			fill := strings.NewReplacer("NAME", what, "WORD", Quote(what))
			message := "git " + operation + ": " + fill.Replace(r.message)
			return &abi.Error{Code: r.code, Permanent: r.code != abi.Unavailable, Message: message, Hint: fill.Replace(r.hint)}
		}
	}
	return nil
}

// A refusal has the words of git that name what it is about, and what is said instead, with
// NAME for that, and WORD for the same as a word of a shell.
type refusal struct {
	words         *lazyregexp.Regexp
	code          abi.Code
	message, hint string
}

const (
	badValue   = "the configuration has a value for NAME that git does not take"
	whereValue = "git config --show-origin --get-all WORD shows where it is"
)

var refusals = []refusal{
	{lazyregexp.New(`dubious ownership in repository at '(.*)'`),
		abi.Denied, "repository NAME belongs to another user of this machine",
		"if you trust it: git config --global --add safe.directory WORD"},
	{lazyregexp.New(`(?i)Unable to create '(.*\.lock)': File exists`),
		abi.Unavailable, "another git is at work and holds NAME",
		"wait until it has ended; if no git is at work, remove that file"},
	{lazyregexp.New(`Pathspec '.*' is in submodule '(.*)'`),
		abi.Conflict, "NAME is the folder of a submodule, whose files belong to another repository",
		"commit them in the repository of the submodule"},
	{lazyregexp.New(`error: '(.*)' does not have a commit checked out`),
		abi.Conflict,
		"folder NAME is a git repository of its own, without a commit, so that its files cannot be committed",
		"if its files belong to this repository: rm -rf WORD/.git"},
	{lazyregexp.New(`(?m)^(?:fatal|error): (.*): (?:smudge|clean) filter lfs failed`),
		abi.Unavailable,
		"the object of NAME in Git LFS is neither on this machine nor at the remote, or git-lfs is missing",
		"git lfs version, and git lfs fetch in the repository, say which"},
	{lazyregexp.New(`your current branch '(.*)' does not have any commits yet`),
		abi.NotFound, "branch NAME has no commit yet", "make a first commit, for example of a README"},
	{lazyregexp.New(`bad (?:numeric|boolean) config value '.*' for '([A-Za-z0-9_.-]+)'`),
		abi.Denied, badValue, whereValue},
	{lazyregexp.New(`(?i)(?:bad config variable|(?:missing|malformed|invalid|unknown) value for(?: config)?|given for|unable to parse) '([a-z0-9_.-]+)'`),
		abi.Denied, badValue, whereValue},
	{lazyregexp.New(`(?i)(?:bad|unrecognized value|invalid branch name:) ([a-z]+\.[a-z.]+)(?: argument)?(?:: | = )`),
		abi.Denied, badValue, whereValue},
	{lazyregexp.New(`bad config line ([0-9]+) in `),
		abi.Denied, "line NAME of a file of git's configuration cannot be read", "git config --list --show-origin shows which"},
}

// causes map git's words, in lower case, to codes. The first that fits counts.
var causes = []struct {
	text string
	code abi.Code
	hint string
}{
	{"could not resolve host", abi.Unavailable, ""},
	{"connection refused", abi.Unavailable, ""},
	{"connection timed out", abi.Unavailable, ""},
	{"connection reset", abi.Unavailable, ""},
	{"the requested url returned error: 5", abi.Unavailable, ""},
	{"unable to access", abi.Unavailable, ""},
	{"early eof", abi.Unavailable, ""},
	{"authentication failed", abi.Denied, "configure credentials for git outside the repository"},
	{"could not read username", abi.Denied, "configure credentials for git outside the repository"},
	{"permission denied", abi.Denied, ""},
	{"host key verification failed", abi.Denied, ""},
	{"not allowed", abi.Denied, "only https, ssh and files are allowed, and for tickets http of this machine"},
	{"not a git repository", abi.NotFound, "operation init makes one"},
	{"does not appear to be a git repository", abi.NotFound, ""},
	{"unknown revision", abi.NotFound, ""},
	{"bad revision", abi.NotFound, ""},
	{"did not match any", abi.NotFound, ""},
	{"invalid reference", abi.NotFound, ""},
	{"not a valid object name", abi.NotFound, ""},
	{"couldn't find remote ref", abi.NotFound, ""},
	{"does not have any commits", abi.NotFound, "there is no commit yet"},
	{"needed a single revision", abi.NotFound, ""},
	{"already exists", abi.Conflict, ""},
	{"would be overwritten", abi.Conflict, "commit or take back the changes first"},
	{"pathspec", abi.NotFound, ""},
}
