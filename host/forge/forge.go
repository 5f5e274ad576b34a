package forge

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Forge has repositories with pull requests. Its errors wrap an [abi.Error] by which it
// is decided whether the call is repeated.
type Forge interface {
	// OpenPull returns the open pull request of a branch, and makes it if there is none.
	OpenPull(ctx context.Context, in Open) (p Pull, made bool, err error)
	// Pull returns a pull request as it is now.
	Pull(ctx context.Context, in Repository, number int) (Pull, error)
	// Comment adds a comment, unless one with the same key was added within a day.
	Comment(ctx context.Context, in Repository, number int, body, key string) (url string, err error)
}

// A Repository is one of a forge.
type Repository struct{ Owner, Name string }

func (r Repository) String() string { return r.Owner + "/" + r.Name }

// Open asks for a pull request.
type Open struct {
	Repository
	Head, Base  string // branches
	Title, Body string
}

// States of a pull request.
const (
	StateOpen   = "open"
	StateClosed = "closed" // without a merge
	StateMerged = "merged"
)

// A Pull is a pull request.
type Pull struct {
	Number int
	URL    string // for people
	State  string
	Head   string // branch
	Base   string
	Commit string // of the head
}

var validName = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$`)

// maxGroups is how many groups of GitLab may be in each other.
const maxGroups = 20

// ParseRepository reads OWNER/NAME, or GROUP/.../NAME of GitLab.
func ParseRepository(text string) (Repository, error) {
	parts := strings.Split(text, "/")
	n := len(parts) - 1
	if n < 1 || n > maxGroups || slices.ContainsFunc(parts, func(part string) bool { return !validName.MatchString(part) }) {
		return Repository{}, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "repository", Message: fmt.Sprintf("repository: %.100q: want OWNER/NAME", text)}
	}
	return Repository{strings.Join(parts[:n], "/"), parts[n]}, nil
}

// RepositoryOf returns the repository that a remote is on a forge, false if it is elsewhere.
func RepositoryOf(forge, remote string) (Repository, bool) {
	at, err := url.Parse(forge)
	if err != nil || at.Host == "" {
		return Repository{}, false
	}
	path := ""
	if u, err := url.Parse(remote); err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "ssh" || u.Scheme == at.Scheme) {
		if !strings.EqualFold(u.Hostname(), at.Hostname()) {
			return Repository{}, false
		}
		path = strings.TrimPrefix(u.Path, "/")
		if u.Scheme != "ssh" { // a forge below a path has its name in URLs of the web only
			path = strings.TrimPrefix(path, strings.Trim(at.Path, "/")+"/")
		}
	} else if who, rest, ok := strings.Cut(remote, ":"); ok && !strings.Contains(who, "/") { // user@host:path
		_, host, _ := strings.Cut(who, "@")
		if !strings.EqualFold(host, at.Hostname()) {
			return Repository{}, false
		}
		path = strings.TrimPrefix(rest, "/")
	}
	r, err := ParseRepository(strings.TrimSuffix(strings.TrimSuffix(path, "/"), ".git"))
	return r, err == nil
}
