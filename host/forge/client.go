package forge

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/endpoint"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// Kinds of forges.
const (
	GitHub  = "github"
	Gitea   = "gitea"
	Forgejo = "forgejo"
	GitLab  = "gitlab"
)

// Bounds of one request.
const (
	maxAnswer  = 8 << 20
	maxPages   = 10
	perPage    = 30
	longest    = time.Hour // of a delay that a server asks for
	maxRefusal = 500       // bytes of what a server says about an error
)

// ClientOptions are what a Client needs. URL is required.
type ClientOptions struct {
	URL   string                 // of the forge as people see it, such as https://github.com
	Kind  string                 // default github for github.com, gitlab for gitlab.com, else gitea
	Token func() (string, error) // default none
	// Timeout limits a request; default 30 s.
	Timeout   time.Duration
	Transport http.RoundTripper // default that of package http, with the proxy of the environment
	Now       func() time.Time
}

// A Client is a forge that is asked over its REST API.
type Client struct {
	opt  ClientOptions
	base *url.URL // of the API
	http *http.Client
}

// NewClient returns a Client.
func NewClient(opt ClientOptions) (*Client, error) {
	at, ok := endpoint.Parse(opt.URL)
	if !ok {
		return nil, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "forge.url", Message: "forge.url: want https://HOST, without credentials; http only for this machine"}
	}
	if opt.Kind == "" {
		switch at.Hostname() {
		case "github.com":
			opt.Kind = GitHub
		case "gitlab.com":
			opt.Kind = GitLab
		default:
			opt.Kind = Gitea
		}
	}
	if opt.Timeout == 0 {
		opt.Timeout = 30 * time.Second
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	c := &Client{opt: opt}
	switch {
	case opt.Kind == GitHub && at.Hostname() == "github.com":
		c.base = &url.URL{Scheme: "https", Host: "api.github.com", Path: "/"}
	case opt.Kind == GitHub:
		c.base = at.JoinPath("api", "v3")
	case opt.Kind == GitLab:
		c.base = at.JoinPath("api", "v4")
	default:
		c.base = at.JoinPath("api", "v1")
	}
	c.http = &http.Client{Transport: opt.Transport, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		// The token goes to the forge alone, and a POST is not repeated elsewhere.
		if len(via) > 3 || via[0].Method != http.MethodGet || r.URL.Host != via[0].URL.Host || r.URL.Scheme != via[0].URL.Scheme {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	return c, nil
}

// pulls returns the path of the pull requests of a repository, or of what is behind it.
func (c *Client) pulls(in Repository, more ...string) []string {
	if c.opt.Kind == GitLab { // where the group of a project may be in others
		return append([]string{"projects", url.PathEscape(in.String()), "merge_requests"}, more...)
	}
	return append([]string{"repos", in.Owner, in.Name, "pulls"}, more...)
}

// comments returns the path of the comments of a pull request.
func (c *Client) comments(in Repository, number int) []string {
	if c.opt.Kind == GitLab {
		return c.pulls(in, strconv.Itoa(number), "notes")
	}
	return []string{"repos", in.Owner, in.Name, "issues", strconv.Itoa(number), "comments"}
}

// pull is a pull request as the API has it.
type pull struct {
	Number   int     `json:"number"`
	URL      string  `json:"html_url"`
	State    string  `json:"state"`
	Merged   bool    `json:"merged"`
	MergedAt *string `json:"merged_at"`
	Head     struct {
		Ref string `json:"ref"`
		SHA string `json:"sha"`
	} `json:"head"`
	Base struct {
		Ref string `json:"ref"`
	} `json:"base"`

	// A merge request of GitLab has these in place of the others; see read.
	IID    int    `json:"iid"`
	WebURL string `json:"web_url"`
	Source string `json:"source_branch"`
	Target string `json:"target_branch"`
	SHA    string `json:"sha"`
}

// read fills in the other fields from those of GitLab.
func (p *pull) read() {
	if p.IID == 0 {
		return
	}
	p.Number, p.URL, p.Head.Ref, p.Head.SHA, p.Base.Ref = p.IID, p.WebURL, p.Source, p.SHA, p.Target
	switch p.State {
	case "opened", "locked": // locked while it is merged
		p.State = "open"
	case "merged":
		p.Merged = true
	}
}

func (p pull) pull() Pull {
	state := StateOpen
	if p.Merged || p.MergedAt != nil {
		state = StateMerged
	} else if p.State != "open" {
		state = StateClosed
	}
	link := p.URL
	if u, err := url.Parse(link); err != nil || u.Scheme != "https" && u.Scheme != "http" || len(link) > 2000 {
		link = ""
	}
	return Pull{Number: p.Number, URL: link, State: state, Head: p.Head.Ref, Base: p.Base.Ref, Commit: p.Head.SHA}
}

// OpenPull implements [Forge].
func (c *Client) OpenPull(ctx context.Context, in Open) (Pull, bool, error) {
	have, err := c.find(ctx, in)
	if err != nil || have.Number != 0 {
		return have, false, err
	}
	var p pull
	body := map[string]string{"title": in.Title, "head": in.Head, "base": in.Base, "body": in.Body}
	if c.opt.Kind == GitLab {
		body = map[string]string{"title": in.Title, "source_branch": in.Head, "target_branch": in.Base, "description": in.Body}
	}
	err = c.ask(ctx, http.MethodPost, c.pulls(in.Repository), nil, body, &p)
	p.read()
	switch refused := abi.As(err); {
	case err == nil:
	case refused.Code == abi.Conflict || refused.Code == abi.BadFields:
		// Another call may have made it since.
		if have, again := c.find(ctx, in); again == nil && have.Number != 0 {
			return have, false, nil
		}
		if refused.Hint == "" {
			refused.Hint = "push the branch first; it must differ from its base"
		}
	case refused.Code == abi.NotFound: // the list was there, so the repository is
		if refused.Hint = "push the branch first; the token must allow to write pull requests"; c.opt.Kind != GitHub {
			refused.Hint = "push the branch first, and check that the forge has its base; the token must allow to write pull requests"
		}
	}
	if err == nil && p.Number < 1 {
		err = &abi.Error{Code: abi.Output, Message: "open a pull request: the answer of the forge has no number"}
	}
	return p.pull(), err == nil, err
}

// find returns the open pull request of a branch, the zero Pull if there is none.
func (c *Client) find(ctx context.Context, in Open) (Pull, error) {
	for page := 1; page <= maxPages; page++ {
		var list []pull
		// GitHub and GitLab filter by branch; the others list all, a page at a time.
		query := url.Values{"state": {"open"}, "head": {in.Owner + ":" + in.Head}, "limit": {strconv.Itoa(perPage)}, "per_page": {strconv.Itoa(perPage)}, "page": {strconv.Itoa(page)}}
		if c.opt.Kind == GitLab {
			query = url.Values{"state": {"opened"}, "source_branch": {in.Head}, "target_branch": {in.Base}, "per_page": {strconv.Itoa(perPage)}, "page": {strconv.Itoa(page)}}
		}
		if err := c.ask(ctx, http.MethodGet, c.pulls(in.Repository), query, nil, &list); err != nil {
			return Pull{}, err
		}
		for _, p := range list {
			if p.read(); p.Head.Ref == in.Head && p.Base.Ref == in.Base && p.Number > 0 {
				return p.pull(), nil
			}
		}
		if len(list) < perPage {
			break
		}
	}
	return Pull{}, nil
}

// Pull implements [Forge].
func (c *Client) Pull(ctx context.Context, in Repository, number int) (Pull, error) {
	var p pull
	err := c.ask(ctx, http.MethodGet, c.pulls(in, strconv.Itoa(number)), nil, nil, &p)
	if p.read(); err == nil && p.Number != number {
		err = &abi.Error{Code: abi.Output, Message: fmt.Sprintf("pull request %d: the forge answered about %d", number, p.Number)}
	}
	return p.pull(), err
}

// Comment implements [Forge]. The key is in the text of the comment, where people do not
// see it.
func (c *Client) Comment(ctx context.Context, in Repository, number int, body, key string) (string, error) {
	type comment struct {
		ID   int64  `json:"id"`
		URL  string `json:"html_url"`
		Body string `json:"body"`
	}
	path := c.comments(in, number)
	link := func(n comment) string {
		if c.opt.Kind == GitLab { // its notes have no address
			return fmt.Sprintf("%s/%s/-/merge_requests/%d#note_%d", strings.TrimSuffix(c.opt.URL, "/"), in, number, n.ID)
		}
		return n.URL
	}
	if key != "" {
		sum := sha256.Sum256([]byte(key))
		mark := "<!-- sentinel:" + hex.EncodeToString(sum[:12]) + " -->"
		body += "\n\n" + mark
		last := int64(0)
		for page := 1; page <= maxPages; page++ {
			var list []comment
			query := url.Values{"since": {c.opt.Now().Add(-24 * time.Hour).UTC().Format(time.RFC3339)}, "per_page": {"100"}, "page": {strconv.Itoa(page)}}
			if err := c.ask(ctx, http.MethodGet, path, query, nil, &list); err != nil {
				return "", err
			}
			for _, have := range list {
				if strings.Contains(have.Body, mark) {
					return link(have), nil
				}
			}
			if len(list) < 100 || list[0].ID == last { // Gitea has one page
				break
			}
			last = list[0].ID
		}
	}
	var made comment
	err := c.ask(ctx, http.MethodPost, path, nil, map[string]string{"body": body}, &made)
	if err != nil {
		return "", err
	}
	return link(made), nil
}

// ask makes one request.
func (c *Client) ask(ctx context.Context, method string, path []string, query url.Values, body, out any) error {
	limited, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	to := c.base.JoinPath(path...)
	to.RawQuery = query.Encode()
	r, err := http.NewRequestWithContext(limited, method, to.String(), bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "sentinel")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	token := ""
	if c.opt.Token != nil {
		if token, err = c.opt.Token(); err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer "+token)
	}
	what := fmt.Sprintf("%s %s of %s", method, strings.Join(path, "/"), c.base.Host)
	answer, err := c.http.Do(r)
	if err != nil {
		return c.failed(ctx, limited, what, err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return c.failed(ctx, limited, what, err)
	case answer.StatusCode/100 != 2:
		if token != "" { // a server may repeat what it got
			raw = bytes.ReplaceAll(raw, []byte(token), []byte("***"))
		}
		return c.refused(what, answer, raw)
	case len(raw) > maxAnswer:
		return &abi.Error{Code: abi.Output, Permanent: true, Message: fmt.Sprintf("%s: the answer has more than %d MiB", what, maxAnswer>>20)}
	}
	if err := strictjson.DecodeForeign(raw, out); err != nil {
		return &abi.Error{Code: abi.Output, Message: fmt.Sprintf("%s: the answer is not JSON of the expected form", what), Hint: "check forge.url and forge.kind"}
	}
	return nil
}

// failed is the error of a request without an answer.
func (c *Client) failed(ctx, limited context.Context, what string, err error) error {
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", what, ctx.Err())
	case limited.Err() != nil:
		return &abi.Error{Code: abi.Timeout, Message: fmt.Sprintf("%s: no answer within %s", what, c.opt.Timeout)}
	}
	var asked *url.Error
	if errors.As(err, &asked) {
		err = asked.Err // without the URL, which is in what
	}
	return &abi.Error{Code: abi.Unavailable, Message: fmt.Sprintf("%s: %v", what, err)}
}

// refused is the error of an unsuccessful response.
func (c *Client) refused(what string, answer *http.Response, raw []byte) error {
	var said struct {
		Message     any    `json:"message"`
		Error       any    `json:"error"` // of GitLab, about parameters and tokens
		Description string `json:"error_description"`
		Errors      []any  `json:"errors"`
	}
	_ = strictjson.DecodeForeign(raw, &said) // a proxy answers in HTML
	text := strings.Join(words([]any{said.Message, said.Error, said.Description}), " ")
	for i, e := range said.Errors {
		if i == 5 {
			text += fmt.Sprintf("; and %d more", len(said.Errors)-i)
			break
		}
		if more := strings.Join(words(e), " "); more != "" {
			text += "; " + more
		}
	}
	e := &abi.Error{Code: abi.Unavailable, Message: what + ": " + answer.Status}
	if text = textcut.Mark(strings.ToValidUTF8(text, ""), maxRefusal); text != "" {
		e.Message += ": " + text
	}
	e.RetryAfterMs = c.delay(answer.Header)
	permanent := func(code abi.Code, hint string) { e.Code, e.Permanent, e.Hint, e.RetryAfterMs = code, true, hint, 0 }
	known := refusalOf(answer.StatusCode, text)
	switch status := answer.StatusCode; {
	case known != nil && known.wait > 0:
		e.Hint = known.hint
		if e.RetryAfterMs == 0 {
			e.RetryAfterMs = known.wait.Milliseconds()
		}
	case known != nil:
		permanent(known.code, known.hint)
	case status == http.StatusTooManyRequests, status >= 500, status == http.StatusRequestTimeout:
	case status == http.StatusForbidden && (e.RetryAfterMs > 0 || answer.Header.Get("X-RateLimit-Remaining") == "0"): // GitHub's limit of requests
	case status == http.StatusUnauthorized:
		permanent(abi.Denied, "check the secret that forge.token names")
	case status == http.StatusForbidden:
		permanent(abi.Denied, "the token must allow to read and write pull requests and comments of this repository")
	case status == http.StatusNotFound:
		permanent(abi.NotFound, "the repository does not exist, or the token does not allow to see it")
	case status == http.StatusConflict:
		permanent(abi.Conflict, "")
	case status/100 == 3:
		e.Message += ", which leads to another server"
		permanent(abi.Denied,
			"the forge leads elsewhere, which gets no token: check forge.url and the name of the repository, which may have moved")
	default:
		permanent(abi.BadFields, "")
	}
	return e
}

// words returns the texts of a value in the body of an error: a text, a list, an object of GitHub, or
// one of GitLab with the mistakes of each parameter.
func words(said any) (list []string) {
	switch said := said.(type) {
	case string:
		if said != "" {
			list = append(list, said)
		}
	case []any:
		for _, one := range said {
			list = append(list, words(one)...)
		}
	case map[string]any:
		if said["message"] != nil || said["code"] != nil { // of GitHub
			return words([]any{said["message"], said["field"], said["code"]})
		}
		for _, field := range slices.Sorted(maps.Keys(said)) { // of GitLab, by parameter
			if more := words(said[field]); len(more) > 0 {
				list = append(list, field+" "+strings.Join(more, ", "))
			}
		}
	}
	return list
}

// delay returns what a server asks to wait, in milliseconds. GitHub and GitLab say with other
// headers when their limit of requests ends.
func (c *Client) delay(h http.Header) int64 {
	after := endpoint.RetryAfter(h, c.opt.Now())
	for _, prefix := range []string{"X-RateLimit-", "RateLimit-"} { // of GitHub, of GitLab
		if reset, err := strconv.ParseInt(h.Get(prefix+"Reset"), 10, 64); err == nil && after == 0 && h.Get(prefix+"Remaining") == "0" {
			after = min(max(time.Unix(reset, 0).Sub(c.opt.Now()), 0), longest)
		}
	}
	return after.Milliseconds()
}

var _ Forge = (*Client)(nil)
