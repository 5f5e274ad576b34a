package forge

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Collection has a record of each ticket's newest pull request.
const Collection = "pull_requests"

// Limits of GitHub, in characters; those of Gitea and Forgejo are not lower. A comment has
// its key too.
const (
	maxTitle   = 255
	maxBody    = 65536
	maxComment = maxBody - 100
)

// Marks of what was cut.
const (
	cutTitle = "…"
	cutBody  = "\n\n… (cut here: the text is longer than a forge takes)"
)

// fit cuts a text to what a forge takes, and marks that. The work is done by then, so a text is
// never a reason to refuse it. Characters outside the first plane of Unicode count twice, as
// servers may count them.
func fit(text string, most int, mark string) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD")
	units, end, room := 0, 0, most-utf8.RuneCountInString(mark)
	for i, r := range text {
		if units += utf16.RuneLen(r); units <= room {
			end = i + utf8.RuneLen(r)
		}
	}
	if units <= most {
		return text
	}
	return strings.TrimRight(text[:end], " \n") + mark
}

// A Record is what is durable about a pull request.
type Record struct {
	Ticket     string    `json:"ticket"`
	Repository string    `json:"repository,omitempty" jsonschema:"OWNER/NAME on the forge"`
	Branch     string    `json:"branch"`
	Base       string    `json:"base"`
	Commit     string    `json:"commit"`
	Title      string    `json:"title"`
	Body       string    `json:"body,omitempty"`
	State      string    `json:"state" jsonschema:"open, closed or merged"`
	Number     *int      `json:"number" jsonschema:"null if there is no forge"`
	URL        string    `json:"url,omitempty"`
	CreatedAt  time.Time `json:"created_at"`
	UpdatedAt  time.Time `json:"updated_at"`
}

// A Work is what a pull request proposes.
type Work struct {
	Branch, Base, Commit string
	Remote               string // URL that it was pushed to; "" if there is none
}

// A Tx is the documents as one transaction sees them.
type Tx interface {
	Get(ctx context.Context, collection, id string) (sentinels.Document, error)
	Put(ctx context.Context, collection, id string, data json.RawMessage, expect uint64) (sentinels.Document, error)
}

// Options are what a Service needs. Update and Work are required.
type Options struct {
	Forge Forge  // nil: records alone
	URL   string // of the forge
	// Update executes a transaction on the documents.
	Update func(ctx context.Context, fn func(Tx) error) error
	// Work returns what the holder of the claim of a ticket proposes; the error not_found
	// if there is nothing, and conflict if the claim has ended.
	Work func(ctx context.Context, ticket string, token uint64) (Work, error)
	Now  func() time.Time
}

// A Service opens pull requests for tickets.
type Service struct{ opt Options }

// New returns a Service.
func New(opt Options) *Service {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	return &Service{opt}
}

// A Request asks for the pull request of a ticket.
type Request struct {
	Ticket     string
	Token      uint64
	Title      string
	Body       string
	Repository string // OWNER/NAME; default that of the remote
	Bound      bool   // a Repository that is not that of the remote is denied
	By         string // who wrote Body, which then begins with it; "" for the person whose token the forge gets
}

// Opened is what Open did.
type Opened struct {
	Record
	Outcome string `json:"outcome" enum:"opened,found,recorded" jsonschema:"opened on the forge, found there, or only recorded"`
	Reason  string `json:"reason,omitempty" jsonschema:"why it is only recorded"`
}

// Open opens the pull request of a ticket's branch, or finds it, and records it. Without a
// forge for the repository it is recorded only. A title becomes one line of at most 255
// characters and a body has at most 65,536: the rest is cut and marked.
func (s *Service) Open(ctx context.Context, in Request) (out Opened, err error) {
	in.Title, in.Body = fit(strings.Join(strings.Fields(in.Title), " "), maxTitle, cutTitle), signed(in.Body, in.By, maxBody)
	if in.Title == "" {
		return out, bad("title", "is missing")
	}
	work, err := s.opt.Work(ctx, in.Ticket, in.Token)
	if abi.CodeOf(err) == abi.NotFound { // a call that is repeated when the worktree is gone
		if r, was := s.record(ctx, in.Ticket); was == nil {
			return Opened{Record: r, Outcome: "found"}, nil
		}
	}
	if err != nil {
		return out, err
	}
	now := s.opt.Now().UTC().Truncate(time.Millisecond)
	r := Record{
		Ticket: in.Ticket, Branch: work.Branch, Base: work.Base, Commit: work.Commit, Title: in.Title, Body: in.Body, State: StateOpen,
		CreatedAt: now, UpdatedAt: now,
	}
	repo, reason, err := s.repository(in, work.Remote)
	if err != nil {
		return out, err
	}
	out.Outcome, out.Reason = "recorded", reason
	if reason == "" {
		p, made, err := s.opt.Forge.OpenPull(ctx, Open{Repository: repo, Head: work.Branch, Base: work.Base, Title: in.Title, Body: in.Body})
		if err != nil {
			return Opened{}, err
		}
		r.Repository, r.Number, r.URL, r.State = repo.String(), &p.Number, p.URL, p.State
		if out.Outcome = "found"; made {
			out.Outcome = "opened"
		}
	}
	err = s.opt.Update(ctx, func(tx Tx) error {
		old, revision, err := load(ctx, tx, in.Ticket)
		if err != nil && abi.CodeOf(err) != abi.NotFound {
			return err
		}
		if err == nil && same(old.Number, r.Number) {
			r.CreatedAt = old.CreatedAt
		}
		return save(ctx, tx, r, revision)
	})
	out.Record = r
	return out, err
}

func same(a, b *int) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

// repository returns where the pull request belongs, or why it is only recorded.
func (s *Service) repository(in Request, remote string) (r Repository, reason string, err error) {
	if in.Repository != "" {
		if r, err = ParseRepository(in.Repository); err != nil {
			return r, "", err
		}
	}
	if s.opt.Forge == nil {
		return r, "no forge is configured: set forge.url", nil
	}
	own, found := RepositoryOf(s.opt.URL, remote)
	switch {
	case in.Repository != "" && in.Bound && (!found || !strings.EqualFold(own.String(), r.String())):
		return r, "", &abi.Error{Code: abi.Denied, Permanent: true, Field: "repository",
			Message: fmt.Sprintf("repository: %.200s is not the repository of ticket %s, and only a person opens its pull request elsewhere", r, in.Ticket), Hint: "leave repository out"}
	case in.Repository != "" && !in.Bound:
		return r, "", nil
	case remote == "":
		return r, "the repository has no remote", nil
	case !found:
		return r, fmt.Sprintf("the remote %.200s is not on the forge %s", remote, s.opt.URL), nil
	}
	return own, "", nil
}

// Shown is a pull request as it is.
type Shown struct {
	Record
	Live bool `json:"live" jsonschema:"the state is what the forge says now"`
}

// Pull returns the pull request of a ticket, with its state on the forge.
func (s *Service) Pull(ctx context.Context, ticket string) (out Shown, err error) {
	out.Record, err = s.record(ctx, ticket)
	if err != nil || out.Number == nil || s.opt.Forge == nil {
		return out, err
	}
	repo, err := ParseRepository(out.Repository)
	if err != nil {
		return out, err
	}
	p, err := s.opt.Forge.Pull(ctx, repo, *out.Number)
	if err != nil {
		return out, err
	}
	err = s.opt.Update(ctx, func(tx Tx) error {
		now, revision, err := load(ctx, tx, ticket)
		if err != nil || !same(now.Number, out.Number) {
			return err // it was replaced meanwhile
		}
		if now.State != p.State || now.Commit != p.Commit && p.Commit != "" {
			now.State, now.UpdatedAt = p.State, s.opt.Now().UTC().Truncate(time.Millisecond)
			if p.Commit != "" {
				now.Commit = p.Commit
			}
			err = save(ctx, tx, now, revision)
		}
		out.Record = now
		return err
	})
	out.Live = err == nil
	return out, err
}

// Commented is what Comment did.
type Commented struct {
	Posted bool   `json:"posted"`
	URL    string `json:"url,omitempty"`
	Reason string `json:"reason,omitempty" jsonschema:"why it was not posted"`
}

// Comment adds a comment to the pull request of a ticket. A call that is repeated with its
// key within a day finds the comment. Its first line names by, if that is not empty.
func (s *Service) Comment(ctx context.Context, ticket, body, by, key string) (out Commented, err error) {
	if strings.TrimSpace(body) == "" {
		return out, bad("body", "is missing")
	}
	body = signed(body, by, maxComment)
	r, err := s.record(ctx, ticket)
	if err != nil {
		return out, err
	}
	if r.Number == nil || s.opt.Forge == nil {
		return Commented{Reason: "the pull request is not on a forge"}, nil
	}
	repo, err := ParseRepository(r.Repository)
	if err != nil {
		return out, err
	}
	out.URL, err = s.opt.Forge.Comment(ctx, repo, *r.Number, body, key)
	out.Posted = err == nil
	return out, err
}

// signed returns a body of at most limit characters whose first line names by, if that is not empty. Behind the
// body, an open HTML comment or code fence of it would hide the name.
func signed(body, by string, limit int) string {
	if by == "" {
		return fit(body, limit, cutBody)
	}
	name := by + " wrote:\n\n"
	return name + fit(body, limit-len(name), cutBody)
}

// record returns the record of a ticket.
func (s *Service) record(ctx context.Context, ticket string) (r Record, err error) {
	err = s.opt.Update(ctx, func(tx Tx) error {
		r, _, err = load(ctx, tx, ticket)
		return err
	})
	return r, err
}

func load(ctx context.Context, tx Tx, ticket string) (r Record, revision uint64, err error) {
	doc, err := tx.Get(ctx, Collection, ticket)
	if abi.CodeOf(err) == abi.NotFound {
		return r, 0, &abi.Error{Code: abi.NotFound, Permanent: true, Field: "ticket", Message: fmt.Sprintf("ticket %.100q has no pull request", ticket), Hint: "forge/open-pr opens one"}
	}
	if err != nil {
		return r, 0, err
	}
	if err := json.Unmarshal(doc.Data, &r); err != nil {
		return r, 0, fmt.Errorf("read the pull request of ticket %s: %w", ticket, err)
	}
	return r, doc.Revision, nil
}

func save(ctx context.Context, tx Tx, r Record, revision uint64) error {
	data, err := json.Marshal(r)
	if err == nil {
		_, err = tx.Put(ctx, Collection, r.Ticket, data, revision)
	}
	return err
}

func bad(field, problem string) error {
	return &abi.Error{Code: abi.BadFields, Permanent: true, Field: field, Message: field + ": " + problem}
}
