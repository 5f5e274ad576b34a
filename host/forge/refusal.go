package forge

import (
	"slices"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A refusal is what an unsuccessful response of a forge means. The first one whose status and
// words fit counts.
type refusal struct {
	status []int
	words  *lazyregexp.Regexp
	code   abi.Code
	hint   string
	// wait is how long to wait where the response does not say. A refusal with a wait is worth
	// another attempt, every other one is permanent.
	wait time.Duration
}

// refusals are in the words of GitHub, GitLab, Gitea and Forgejo, as of 2026-11-28. The sources are
// docs.github.com/rest (rate limits for the REST API; troubleshooting; pulls), issue 2355 of
// scala-steward-org/scala-steward, the routers of pull requests in go-gitea/gitea and
// codeberg.org/forgejo/forgejo, and docs.gitlab.com/api (rest/troubleshooting; merge_requests).
var refusals = []refusal{
	{[]int{403, 429}, lazyregexp.New(`(?i)secondary rate limit|abuse detection|temporarily blocked|too quickly`),
		abi.Unavailable, "the forge limits how fast requests may follow each other; with many tickets, claim fewer at a time", time.Minute},
	{[]int{422}, lazyregexp.New(`(?i)submitted too quickly`),
		abi.Unavailable, "the forge limits how fast requests may follow each other", time.Minute},
	{[]int{403, 429}, lazyregexp.New(`(?i)rate limit exceeded`),
		abi.Unavailable, "the token has used its requests of this hour", time.Minute},
	{[]int{403}, lazyregexp.New(`(?i)\bSAML\b|single sign-on|\bSSO\b`),
		abi.Denied, "authorize the token for the organization: its owner requires single sign-on", 0},
	{[]int{403}, lazyregexp.New(`(?i)insufficient_scope`),
		abi.Denied, "the token needs the scope api", 0},
	{[]int{403, 409, 422, 423}, lazyregexp.New(`(?i)archived|read-only`),
		abi.Denied, "the repository is archived: unarchive it, or name another one", 0},
	{[]int{403, 451}, lazyregexp.New(`(?i)access blocked|has been blocked|suspended|disabled`),
		abi.Denied, "the forge has disabled the repository or the account", 0},
	{[]int{403, 409, 422}, lazyregexp.New(`(?i)protected branch|branch protection|repository rule violations`),
		abi.Denied, "rules of the branch forbid it: name another base, or change the rules", 0},
	{[]int{400, 422}, lazyregexp.New(`(?i)too long|too large|maximum is \d+`),
		abi.BadFields, "shorten the title or the text of the pull request or comment", 0},
	{[]int{409, 422}, lazyregexp.New(`(?i)already exists`),
		abi.Conflict, "a pull request of this branch is open with another base: close it, or use its base", 0},
	{[]int{404, 422}, lazyregexp.New(`(?i)no commits between|no changes between|nothing to compare`),
		abi.BadFields, "the branch has no commit that its base has not: commit and push to it first", 0},
	{[]int{400, 404, 409, 422}, lazyregexp.New(`(?i)target branch.{0,80}(?:does not exist|not found)`),
		abi.BadFields, "the forge does not have the base branch: name one that it has", 0},
	{[]int{400, 404, 409, 422}, lazyregexp.New(`(?i)source branch.{0,80}(?:does not exist|not found)`),
		abi.BadFields, "push the branch first", 0},
	{[]int{404, 422}, lazyregexp.New(`(?i)\bbase (?:is )?invalid|\bbase\b.{0,40}(?:does not exist|not found|missing)`),
		abi.BadFields, "the forge does not have the base branch: name one that it has", 0},
	{[]int{404, 422}, lazyregexp.New(`(?i)\bhead (?:is )?invalid|\bhead\b.{0,40}(?:does not exist|not found|missing)|branch does not exist`),
		abi.BadFields, "push the branch first", 0},
}

// refusalOf returns what a response means, nil if only its status says that.
func refusalOf(status int, text string) *refusal {
	for i := range refusals {
		if r := &refusals[i]; slices.Contains(r.status, status) && r.words.MatchString(text) {
			return r
		}
	}
	return nil
}
