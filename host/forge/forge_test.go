package forge_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/forge"
	"github.com/sentinel-runtime/sentinel/runtime/retry"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

const token = "forge-token-forge-token"

// fake is a forge with one repository, o/r, that answers as the public documentation of
// the API of its kind says.
type fake struct {
	kind     string
	mu       sync.Mutex
	pulls    []map[string]any
	comments []map[string]any
	branches []string
	asked    []string
	answer   func(w http.ResponseWriter, r *http.Request) bool // takes a request over
	url      string
}

func newFake(t *testing.T, kind string) *fake {
	f := &fake{kind: kind, branches: []string{"main", "work"}}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

// prefix is the path of the repository.
func (f *fake) prefix() string {
	switch f.kind {
	case forge.GitHub:
		return "/api/v3/repos/o/r/"
	case forge.GitLab:
		return "/api/v4/projects/o%2Fr/"
	}
	return "/api/v1/repos/o/r/"
}

// mergeRequest is a pull request in the form of GitLab.
func mergeRequest(p map[string]any) map[string]any {
	state := map[any]string{"open": "opened", "closed": "closed"}[p["state"]]
	if p["merged"] == true {
		state = "merged"
	}
	return map[string]any{
		"id": p["id"], "iid": p["number"], "state": state, "title": p["title"], "description": p["body"], "web_url": p["html_url"], "merged_at": p["merged_at"],
		"source_branch": p["head"].(map[string]any)["ref"], "target_branch": p["base"].(map[string]any)["ref"], "sha": p["head"].(map[string]any)["sha"],
	}
}

// gitlab answers as GitLab does; rest is the path below the project.
func (f *fake) gitlab(r *http.Request, rest string, body map[string]string) (status int, answer any) {
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	size, _ := strconv.Atoi(r.URL.Query().Get("per_page"))
	part := strings.Split(rest, "/")
	n := 0
	if len(part) > 1 {
		if n, _ = strconv.Atoi(part[1]); n < 1 || n > len(f.pulls) {
			return 404, map[string]any{"message": "404 Not found"}
		}
	}
	switch {
	case rest == "merge_requests" && r.Method == http.MethodGet:
		list := []map[string]any{}
		for _, p := range f.pulls {
			if m := mergeRequest(p); m["state"] == r.URL.Query().Get("state") && m["source_branch"] == r.URL.Query().Get("source_branch") && m["target_branch"] == r.URL.Query().Get("target_branch") {
				list = append(list, m)
			}
		}
		from := min((page-1)*size, len(list))
		return 200, list[from:min(from+size, len(list))]
	case rest == "merge_requests":
		if !slices.Contains(f.branches, body["source_branch"]) {
			return 409, map[string]any{"message": []string{"Source branch \"" + body["source_branch"] + "\" does not exist"}}
		}
		for i, p := range f.pulls {
			if p["state"] == "open" && p["head"].(map[string]any)["ref"] == body["source_branch"] {
				return 409, map[string]any{"message": []string{fmt.Sprintf("Another open merge request already exists for this source branch: !%d", i+1)}}
			}
		}
		return 201, mergeRequest(f.open(body["source_branch"], body["target_branch"], body["title"], body["description"]))
	case len(part) == 2:
		return 200, mergeRequest(f.pulls[n-1])
	case len(part) == 3 && part[2] == "notes" && r.Method == http.MethodGet:
		if page > 1 {
			return 200, []any{}
		}
		return 200, append([]map[string]any{}, f.comments...)
	case len(part) == 3 && part[2] == "notes":
		c := map[string]any{"id": len(f.comments) + 1, "body": body["body"]}
		f.comments = append(f.comments, c)
		return 201, c
	}
	return 404, map[string]any{"error": "404 Not Found"}
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, r.Method+" "+r.URL.Path)
	if f.answer != nil && f.answer(w, r) {
		return
	}
	say := func(status int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
	}
	missing := func() {
		if f.kind == forge.GitHub {
			say(404, map[string]any{"message": "Not Found", "documentation_url": "https://docs.github.com/rest", "status": "404"})
			return
		}
		if f.kind == forge.GitLab {
			say(404, map[string]any{"message": "404 Project Not Found"})
			return
		}
		say(404, map[string]any{"errors": []string{}, "message": "The target couldn't be found.", "url": f.url + "/api/swagger"})
	}
	if r.Header.Get("Authorization") != "Bearer "+token {
		if f.kind == forge.GitHub {
			say(401, map[string]any{"message": "Bad credentials", "status": "401"})
		} else {
			say(401, map[string]any{"message": "invalid username, password or token", "url": f.url + "/api/swagger"})
		}
		return
	}
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), f.prefix())
	if !ok {
		missing()
		return
	}
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	var body map[string]string
	if r.Method == http.MethodPost {
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.Header.Get("Content-Type") != "application/json" {
			say(400, map[string]any{"message": "Problems parsing JSON"})
			return
		}
	}
	if f.kind == forge.GitLab {
		say(f.gitlab(r, rest, body))
		return
	}
	part := strings.Split(rest, "/")
	switch {
	case rest == "pulls" && r.Method == http.MethodGet:
		list := []map[string]any{}
		for _, p := range f.pulls {
			head := p["head"].(map[string]any)["ref"]
			if p["state"] == "open" && (f.kind != forge.GitHub || r.URL.Query().Get("head") == fmt.Sprint("o:", head)) {
				list = append(list, p)
			}
		}
		size, _ := strconv.Atoi(r.URL.Query().Get(map[bool]string{true: "per_page", false: "limit"}[f.kind == forge.GitHub]))
		from := min((page-1)*size, len(list))
		say(200, list[from:min(from+size, len(list))])
	case rest == "pulls":
		if !slices.Contains(f.branches, body["head"]) {
			if f.kind == forge.GitHub {
				say(422, map[string]any{"message": "Validation Failed", "errors": []any{map[string]any{"resource": "PullRequest", "field": "head", "code": "invalid"}}})
			} else {
				missing()
			}
			return
		}
		for _, p := range f.pulls {
			if p["state"] == "open" && p["head"].(map[string]any)["ref"] == body["head"] {
				if f.kind == forge.GitHub {
					say(422, map[string]any{"message": "Validation Failed", "errors": []any{map[string]any{"resource": "PullRequest", "code": "custom", "message": "A pull request already exists for o:" + body["head"] + "."}}})
				} else {
					say(409, map[string]any{"message": "pull request already exists for these targets [id: 1, issue_id: 1]", "url": f.url + "/api/swagger"})
				}
				return
			}
		}
		say(201, f.open(body["head"], body["base"], body["title"], body["body"]))
	case part[0] == "pulls" && len(part) == 2:
		n, _ := strconv.Atoi(part[1])
		if n < 1 || n > len(f.pulls) {
			missing()
			return
		}
		say(200, f.pulls[n-1])
	case part[0] == "issues" && len(part) == 3 && part[2] == "comments" && r.Method == http.MethodGet:
		if f.kind == forge.GitHub && page > 1 {
			say(200, []any{})
			return
		}
		say(200, append([]map[string]any{}, f.comments...))
	case part[0] == "issues" && len(part) == 3 && part[2] == "comments":
		c := map[string]any{"id": len(f.comments) + 1, "html_url": fmt.Sprintf("%s/o/r/pulls/1#issuecomment-%d", f.url, len(f.comments)+1), "body": body["body"]}
		f.comments = append(f.comments, c)
		say(201, c)
	default:
		missing()
	}
}

// open makes a pull request.
func (f *fake) open(head, base, title, body string) map[string]any {
	n := len(f.pulls) + 1
	p := map[string]any{
		"id": n + 1000, "number": n, "state": "open", "title": title, "body": body, "merged_at": nil, "html_url": fmt.Sprintf("%s/o/r/pulls/%d", f.url, n),
		"head": map[string]any{"ref": head, "sha": "c0ffee", "label": "o:" + head}, "base": map[string]any{"ref": base, "sha": "ba5e", "label": "o:" + base},
	}
	if f.kind != forge.GitHub || len(f.pulls) > 0 {
		p["merged"] = false
	}
	f.pulls = append(f.pulls, p)
	return p
}

func (f *fake) client(t *testing.T) *forge.Client {
	t.Helper()
	c, err := forge.NewClient(forge.ClientOptions{URL: f.url, Kind: f.kind, Token: func() (string, error) { return token, nil }, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var repo = forge.Repository{Owner: "o", Name: "r"}

func kinds(t *testing.T, fn func(t *testing.T, f *fake, c *forge.Client)) {
	for _, kind := range []string{forge.GitHub, forge.GitLab, forge.Gitea, forge.Forgejo} {
		t.Run(kind, func(t *testing.T) {
			f := newFake(t, kind)
			fn(t, f, f.client(t))
		})
	}
}

func TestPullsOfEachKind(t *testing.T) {
	kinds(t, func(t *testing.T, f *fake, c *forge.Client) {
		for i := range 40 { // more than a page of others
			f.branches = append(f.branches, fmt.Sprint("other", i))
			f.open(fmt.Sprint("other", i), "main", "t", "")
		}
		in := forge.Open{Repository: repo, Head: "work", Base: "main", Title: "T-1: work", Body: "why"}
		p, made, err := c.OpenPull(t.Context(), in)
		want := forge.Pull{Number: 41, URL: f.url + "/o/r/pulls/41", State: forge.StateOpen, Head: "work", Base: "main", Commit: "c0ffee"}
		if err != nil || !made || p != want {
			t.Fatalf("got %+v, %v, %v", p, made, err)
		}
		if f.pulls[40]["title"] != "T-1: work" || f.pulls[40]["body"] != "why" {
			t.Errorf("the forge has %v", f.pulls[40])
		}
		if p, made, err := c.OpenPull(t.Context(), in); err != nil || made || p != want {
			t.Errorf("again: %+v, %v, %v", p, made, err)
		}
		// Another program opens it between the look and the request.
		lists := 0
		f.answer = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodGet {
				if lists++; lists == 1 {
					_, _ = w.Write([]byte("[]"))
					return true
				}
			}
			return false
		}
		if p, made, err := c.OpenPull(t.Context(), in); err != nil || made || p != want {
			t.Errorf("a race: %+v, %v, %v", p, made, err)
		}
		f.answer = nil
		for state, change := range map[string]map[string]any{
			forge.StateMerged: {"state": "closed", "merged": true, "merged_at": "2026-01-01T00:00:00Z"}, forge.StateClosed: {"state": "closed", "merged": false, "merged_at": nil},
		} {
			for name, value := range change {
				f.pulls[40][name] = value
			}
			if p, err := c.Pull(t.Context(), repo, 41); err != nil || p.State != state {
				t.Errorf("%s: %+v, %v", state, p, err)
			}
		}
		// A closed one is not opened again: the next attempt has its own.
		if p, made, err := c.OpenPull(t.Context(), in); err != nil || !made || p.Number != 42 {
			t.Errorf("behind a closed one: %+v, %v, %v", p, made, err)
		}
		in.Head = "missing"
		_, _, err = c.OpenPull(t.Context(), in)
		if e := abi.As(err); e == nil || !e.Permanent || e.Code != abi.BadFields && e.Code != abi.NotFound || !strings.Contains(e.Hint, "push the branch first") {
			t.Errorf("a branch that was not pushed: %+v", e)
		}
	})
}

func TestComments(t *testing.T) {
	kinds(t, func(t *testing.T, f *fake, c *forge.Client) {
		f.open("work", "main", "t", "")
		first, err := c.Comment(t.Context(), repo, 1, "please fix it", "key 1")
		if err != nil || first == "" || len(f.comments) != 1 || !strings.HasPrefix(f.comments[0]["body"].(string), "please fix it\n\n<!-- sentinel:") {
			t.Fatalf("got %q, %v, %v", first, err, f.comments)
		}
		if again, err := c.Comment(t.Context(), repo, 1, "please fix it", "key 1"); err != nil || again != first || len(f.comments) != 1 {
			t.Errorf("again: %q, %v, %d comments", again, err, len(f.comments))
		}
		for range 2 { // without a key each call is one
			if _, err := c.Comment(t.Context(), repo, 1, "x", ""); err != nil {
				t.Error(err)
			}
		}
		if _, err := c.Comment(t.Context(), repo, 1, "please fix it", "key 2"); err != nil || len(f.comments) != 4 {
			t.Errorf("%d comments, %v", len(f.comments), err)
		}
	})
}

// TestForgeThatFails: a forge that is down, slow or refuses ends in an error whose category
// says whether the call is repeated, and whose text says what to do.
func TestForgeThatFails(t *testing.T) {
	answer := func(status int, header map[string]string, body string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			for name, value := range header {
				w.Header().Set(name, value)
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
			return true
		}
	}
	now := time.Now()
	for name, c := range map[string]struct {
		answer    func(http.ResponseWriter, *http.Request) bool
		code      abi.Code
		permanent bool
		after     time.Duration
		words     string
	}{
		"down":              {answer(503, nil, "<html>down</html>"), abi.Unavailable, false, 0, "503"},
		"bad gateway":       {answer(502, map[string]string{"Retry-After": "7"}, ""), abi.Unavailable, false, 7 * time.Second, "502"},
		"too many":          {answer(429, map[string]string{"Retry-After": "30"}, `{"message":"slow down"}`), abi.Unavailable, false, 30 * time.Second, "slow down"},
		"too many, a date":  {answer(429, map[string]string{"Retry-After": now.Add(time.Minute).UTC().Format(http.TimeFormat)}, ``), abi.Unavailable, false, time.Minute, "429"},
		"too many, absurd":  {answer(429, map[string]string{"Retry-After": "99999999999"}, ``), abi.Unavailable, false, 0, "429"},
		"too many, a year":  {answer(429, map[string]string{"Retry-After": "31536000"}, ``), abi.Unavailable, false, time.Hour, "429"},
		"limit of GitHub":   {answer(403, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": strconv.FormatInt(now.Add(time.Minute).Unix(), 10)}, `{"message":"API rate limit exceeded"}`), abi.Unavailable, false, time.Minute, "rate limit"},
		"limit of GitLab":   {answer(429, map[string]string{"RateLimit-Remaining": "0", "RateLimit-Reset": strconv.FormatInt(now.Add(time.Minute).Unix(), 10)}, `Retry later`), abi.Unavailable, false, time.Minute, "429"},
		"scope of GitLab":   {answer(403, nil, `{"error":"insufficient_scope","error_description":"The request requires higher privileges than provided by the access token.","scope":"api"}`), abi.Denied, true, 0, "scope api"},
		"token of GitLab":   {answer(401, nil, `{"error":"invalid_token","error_description":"Token was revoked."}`), abi.Denied, true, 0, "Token was revoked"},
		"unauthorized":      {answer(401, nil, `{"message":"Bad credentials"}`), abi.Denied, true, 0, "forge.token"},
		"forbidden":         {answer(403, nil, `{"message":"Resource not accessible by personal access token"}`), abi.Denied, true, 0, "not accessible"},
		"archived":          {answer(423, nil, `{"message":"archived"}`), abi.Denied, true, 0, "unarchive"},
		"read-only":         {answer(403, nil, `{"message":"Repository was archived so is read-only."}`), abi.Denied, true, 0, "unarchive"},
		"second limit":      {answer(403, nil, `{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}`), abi.Unavailable, false, time.Minute, "how fast"},
		"second limit, 429": {answer(429, map[string]string{"Retry-After": "90"}, `{"message":"You have exceeded a secondary rate limit."}`), abi.Unavailable, false, 90 * time.Second, "how fast"},
		"second limit, 422": {answer(422, nil, `{"message":"Validation Failed","errors":[{"message":"was submitted too quickly"}]}`), abi.Unavailable, false, time.Minute, "how fast"},
		"first limit":       {answer(403, nil, `{"message":"API rate limit exceeded for user ID 1."}`), abi.Unavailable, false, time.Minute, "of this hour"},
		"single sign-on":    {answer(403, nil, `{"message":"Resource protected by organization SAML enforcement. You must grant your token access to this organization."}`), abi.Denied, true, 0, "authorize the token"},
		"rules of a branch": {answer(422, nil, `{"message":"Repository rule violations found"}`), abi.Denied, true, 0, "rules of the branch"},
		"too long":          {answer(422, nil, `{"message":"Validation Failed","errors":[{"resource":"Issue","code":"custom","field":"body","message":"body is too long (maximum is 65536 characters)"}]}`), abi.BadFields, true, 0, "shorten"},
		"disabled":          {answer(451, nil, `{"message":"Repository access blocked"}`), abi.Denied, true, 0, "disabled"},
		"missing":           {answer(404, nil, `{"message":"Not Found"}`), abi.NotFound, true, 0, "does not exist"},
		"no JSON":           {answer(200, nil, "<html>login</html>"), abi.Output, false, 0, "forge.kind"},
		"another form":      {answer(200, nil, `"text"`), abi.Output, false, 0, "forge.kind"},
		"another number":    {answer(200, nil, `{"number": 7}`), abi.Output, false, 0, "about 7"},
		"huge":              {answer(200, nil, strings.Repeat(" ", 9<<20)), abi.Output, true, 0, "8 MiB"},
		"huge error":        {answer(500, nil, `{"message":"`+strings.Repeat("x", 1<<20)+`"}`), abi.Unavailable, false, 0, "xxx"},
		"another host":      {answer(302, map[string]string{"Location": "http://127.0.0.2:1/"}, ""), abi.Denied, true, 0, "leads elsewhere"},
		"another scheme":    {answer(301, map[string]string{"Location": "https://127.0.0.1/"}, ""), abi.Denied, true, 0, "leads elsewhere"},
		"the same for ever": {answer(302, map[string]string{"Location": "/"}, ""), abi.Denied, true, 0, "leads elsewhere"},
		"connection is reset": {func(w http.ResponseWriter, _ *http.Request) bool {
			conn, _, _ := w.(http.Hijacker).Hijack()
			_ = conn.Close()
			return true
		}, abi.Unavailable, false, 0, "repos/o/r/pulls/1"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, forge.Gitea)
			f.answer = c.answer
			_, err := f.client(t).Pull(t.Context(), repo, 1)
			e := abi.As(err)
			if e == nil || e.Code != c.code || e.Permanent != c.permanent || !strings.Contains(e.Message+e.Hint, c.words) || len(e.Message) > 2000 || strings.Contains(e.Message+e.Hint, token) {
				t.Fatalf("got %+v", e)
			}
			if after := time.Duration(e.RetryAfterMs) * time.Millisecond; after > c.after && c.words != "429" || after < c.after-5*time.Second {
				t.Errorf("delay %s, want %s", after, c.after)
			}
			if d := retry.Decide(retry.ClassifyError(err), 0, sentinels.RetryPolicy{}, time.Duration(e.RetryAfterMs)*time.Millisecond); d.Retry == c.permanent {
				t.Errorf("decision %+v", d)
			}
		})
	}
	t.Run("slow", func(t *testing.T) {
		release := make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
		defer server.Close()
		defer close(release)
		c, err := forge.NewClient(forge.ClientOptions{URL: server.URL, Timeout: 20 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Pull(t.Context(), repo, 1); abi.CodeOf(err) != abi.Timeout {
			t.Errorf("got %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.Pull(ctx, repo, 1); err == nil || abi.CodeOf(err) == abi.Timeout {
			t.Errorf("cancelled: %v", err)
		}
	})
	t.Run("not there", func(t *testing.T) {
		server := httptest.NewServer(nil)
		server.Close()
		c, err := forge.NewClient(forge.ClientOptions{URL: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Pull(t.Context(), repo, 1); abi.CodeOf(err) != abi.Unavailable {
			t.Errorf("got %v", err)
		}
	})
}

// TestTokenStaysAtTheForge: a redirect to another server gets neither the request nor the
// TestRefusedPulls: each of the reasons of a 422, and those of Gitea, has the hint that helps.
func TestRefusedPulls(t *testing.T) {
	for body, want := range map[string]struct {
		status int
		code   abi.Code
		hint   string
	}{
		`{"message":"Validation Failed","errors":[{"resource":"PullRequest","field":"head","code":"invalid"}]}`:                                       {422, abi.BadFields, "push the branch first"},
		`{"message":"Validation Failed","errors":[{"resource":"PullRequest","field":"base","code":"invalid"}]}`:                                       {422, abi.BadFields, "does not have the base branch"},
		`{"message":"Validation Failed","errors":[{"resource":"PullRequest","code":"custom","message":"No commits between main and work"}]}`:          {422, abi.BadFields, "no commit that its base has not"},
		`{"message":"Validation Failed","errors":[{"resource":"PullRequest","code":"custom","message":"A pull request already exists for o:work."}]}`: {422, abi.Conflict, "is open with another base"},
		`{"message":"pull request already exists for these targets"}`:                                                                                 {409, abi.Conflict, "is open with another base"},
		`{"message":"head branch does not exist"}`:                                                                                                    {404, abi.BadFields, "push the branch first"},
		`{"message":["Another open merge request already exists for this source branch: !5"]}`:                                                        {409, abi.Conflict, "is open with another base"},
		`{"message":["Target branch \"main\" does not exist"]}`:                                                                                       {409, abi.BadFields, "does not have the base branch"},
		`{"message":{"title":["is too long (maximum is 255 characters)"]}}`:                                                                           {400, abi.BadFields, "shorten the title"},
		`{"errors":["a text","another one"],"message":"head branch does not exist"}`:                                                                  {422, abi.BadFields, "push the branch first"},
		`{"message":"something new"}`: {422, abi.BadFields, "push the branch first; it must differ from its base"},
		`{"message":"Not Found"}`:     {404, abi.NotFound, "write pull requests"},
	} {
		f := newFake(t, forge.GitHub)
		f.answer = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPost {
				return false
			}
			w.WriteHeader(want.status)
			_, _ = w.Write([]byte(body))
			return true
		}
		_, _, err := f.client(t).OpenPull(t.Context(), forge.Open{Repository: repo, Title: "t", Head: "work", Base: "main"})
		if e := abi.As(err); e == nil || e.Code != want.code || !e.Permanent || !strings.Contains(e.Hint, want.hint) {
			t.Errorf("%s: %+v", body, e)
		}
	}
}

// token.
func TestTokenStaysAtTheForge(t *testing.T) {
	var seen []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = append(seen, r.Header.Get("Authorization")) }))
	defer other.Close()
	f := newFake(t, forge.Gitea)
	f.answer = func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
		return true
	}
	c := f.client(t)
	if _, _, err := c.OpenPull(t.Context(), forge.Open{Repository: repo, Head: "work", Base: "main"}); abi.CodeOf(err) != abi.Denied {
		t.Errorf("got %v", err)
	}
	if _, err := c.Comment(t.Context(), repo, 1, "x", ""); abi.CodeOf(err) != abi.Denied {
		t.Errorf("got %v", err)
	}
	if len(seen) > 0 {
		t.Errorf("the other server got %q", seen)
	}
}

func TestRepositories(t *testing.T) {
	for _, c := range []struct{ forge, remote, want string }{
		{"https://github.com", "https://github.com/o/r.git", "o/r"},
		{"https://github.com", "https://github.com/o/r", "o/r"},
		{"https://github.com/", "git@github.com:o/r.git", "o/r"},
		{"https://github.com", "ssh://git@github.com/o/r.git", "o/r"},
		{"https://git.example.org:3000", "ssh://git@git.example.org:2222/o/r.git/", "o/r"},
		{"https://example.org/git", "https://example.org/git/o/r.git", "o/r"},
		{"https://gitlab.com", "git@gitlab.com:group/sub/r.git", "group/sub/r"},
		{"https://github.com", "https://github.com.evil.example/o/r", ""},
		{"https://github.com", "git@evil.example:o/r.git", ""},
		{"https://github.com", "https://github.com/o/r/../x", ""},
		{"https://github.com", "https://github.com/o", ""},
		{"https://github.com", "/home/o/r", ""},
		{"https://github.com", "file:///o/r", ""},
		{"https://github.com", "", ""},
		{"", "https://github.com/o/r", ""},
	} {
		got, ok := forge.RepositoryOf(c.forge, c.remote)
		if ok != (c.want != "") || ok && got.String() != c.want {
			t.Errorf("%s on %s: got %v, %v", c.remote, c.forge, got, ok)
		}
	}
	for _, text := range []string{"", "o", "o/r/", "/o/r", "o//r", "o/../r", strings.Repeat("g/", 21) + "r", "../r", "o/..", "o/-r", "o/r?x", "o/r#x", "a b/c", "o/" + strings.Repeat("x", 200)} {
		if _, err := forge.ParseRepository(text); abi.CodeOf(err) != abi.BadFields {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"", "github.com", "ftp://x", "http://git.example.org", "https://u:p@x"} {
		if _, err := forge.NewClient(forge.ClientOptions{URL: text}); abi.CodeOf(err) != abi.BadFields {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// documents are those of a host, in memory.
type documents map[string]sentinels.Document

func (d documents) Get(_ context.Context, collection, id string) (sentinels.Document, error) {
	doc, ok := d[collection+"/"+id]
	if !ok {
		return doc, abi.New(abi.NotFound, "no document")
	}
	return doc, nil
}

func (d documents) Put(_ context.Context, collection, id string, data json.RawMessage, expect uint64) (sentinels.Document, error) {
	doc := d[collection+"/"+id]
	if doc.Revision != expect {
		return doc, abi.New(abi.Conflict, "another revision")
	}
	doc = sentinels.Document{Collection: collection, ID: id, Revision: expect + 1, Data: slices.Clone(data)}
	d[collection+"/"+id] = doc
	return doc, nil
}

func TestRecords(t *testing.T) {
	store := documents{}
	work := forge.Work{Branch: "work", Base: "main", Commit: "c0ffee"}
	var none error
	opt := forge.Options{
		Update: func(_ context.Context, fn func(forge.Tx) error) error { return fn(store) },
		Work:   func(context.Context, string, uint64) (forge.Work, error) { return work, none },
	}
	s := forge.New(opt)
	in := forge.Request{Ticket: "T-1", Title: "T-1: work", Body: "why"}
	if _, err := s.Pull(t.Context(), "T-1"); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("got %v", err)
	}
	out, err := s.Open(t.Context(), in)
	if err != nil || out.Outcome != "recorded" || out.Number != nil || out.State != forge.StateOpen || !strings.Contains(out.Reason, "forge.url") || out.Branch != "work" || out.Commit != "c0ffee" {
		t.Errorf("without a forge: %+v, %v", out, err)
	}
	if raw, _ := json.Marshal(out.Record); !strings.Contains(string(raw), `"number":null`) {
		t.Errorf("record %s", raw)
	}
	shown, err := s.Pull(t.Context(), "T-1")
	if err != nil || shown.Live || !cmp.Equal(shown.Record, out.Record) {
		t.Errorf("got %+v, %v", shown, err)
	}
	if c, err := s.Comment(t.Context(), "T-1", "x", "", ""); err != nil || c.Posted || c.Reason == "" {
		t.Errorf("got %+v, %v", c, err)
	}

	f := newFake(t, forge.Gitea)
	opt.Forge, opt.URL = f.client(t), f.url
	s = forge.New(opt)
	if out, err := s.Open(t.Context(), in); err != nil || out.Outcome != "recorded" || !strings.Contains(out.Reason, "no remote") {
		t.Errorf("without a remote: %+v, %v", out, err)
	}
	work.Remote = "https://elsewhere.example/o/r"
	if out, err := s.Open(t.Context(), in); err != nil || out.Outcome != "recorded" || !strings.Contains(out.Reason, "elsewhere.example") || len(f.asked) > 0 {
		t.Errorf("a remote elsewhere: %+v, %v", out, err)
	}
	u, _ := url.Parse(f.url)
	work.Remote = "ssh://git@" + u.Hostname() + ":2222/o/r.git"
	for i, want := range []string{"opened", "found"} {
		out, err = s.Open(t.Context(), in)
		if err != nil || out.Outcome != want || out.Number == nil || *out.Number != 1 || out.URL == "" || out.Repository != "o/r" || len(f.pulls) != 1 {
			t.Errorf("%d: %+v, %v", i, out, err)
		}
	}
	bound := in
	for repository, want := range map[string]abi.Code{"o/other": abi.Denied, "O/R": "", "": ""} {
		bound.Bound, bound.Repository = true, repository
		if _, err := s.Open(t.Context(), bound); abi.CodeOf(err) != want || len(f.pulls) != 1 {
			t.Errorf("a bound caller opens a pull request in %q: %v", repository, err)
		}
	}
	// A call that is repeated when the worktree is gone.
	none = &abi.Error{Code: abi.NotFound, Permanent: true, Message: "no worktree"}
	if again, err := s.Open(t.Context(), in); err != nil || again.Outcome != "found" || *again.Number != 1 {
		t.Errorf("without a worktree: %+v, %v", again, err)
	}
	if _, err := s.Open(t.Context(), forge.Request{Ticket: "T-2", Title: "x"}); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("got %v", err)
	}
	none = &abi.Error{Code: abi.Conflict, Permanent: true, Message: "the claim has ended"}
	if _, err := s.Open(t.Context(), in); abi.CodeOf(err) != abi.Conflict {
		t.Errorf("got %v", err)
	}
	none = nil
	f.pulls[0]["state"], f.pulls[0]["merged"] = "closed", true
	if shown, err := s.Pull(t.Context(), "T-1"); err != nil || !shown.Live || shown.State != forge.StateMerged {
		t.Errorf("merged: %+v, %v", shown, err)
	}
	if shown, err := forge.New(forge.Options{Update: opt.Update}).Pull(t.Context(), "T-1"); err != nil || shown.Live || shown.State != forge.StateMerged {
		t.Errorf("the record: %+v, %v", shown, err)
	}
	// What hides the rest of a text in Markdown does not hide who wrote it.
	signed := forge.Request{Ticket: "T-1", Title: "x", Body: "y <!--", By: "agent:ci"}
	if out, err := forge.New(forge.Options{Update: opt.Update, Work: opt.Work}).Open(t.Context(), signed); err != nil || out.Body != "agent:ci wrote:\n\ny <!--" {
		t.Errorf("got %q, %v", out.Body, err)
	}
	if _, err := s.Open(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	long := "<!--" + strings.Repeat("good ", 20000)
	c, err := s.Comment(t.Context(), "T-1", long, "agent:ci", "k")
	if err != nil || !c.Posted || c.URL == "" || !strings.HasPrefix(fmt.Sprint(f.comments[0]["body"]), "agent:ci wrote:\n\n<!--") {
		t.Errorf("got %+v, %v", c, err)
	}
	// A forge that is down leaves the record as it was.
	before := string(store["pull_requests/T-1"].Data)
	f.answer = func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	if _, err := s.Open(t.Context(), in); abi.CodeOf(err) != abi.Unavailable || string(store["pull_requests/T-1"].Data) != before {
		t.Errorf("got %v", err)
	}
	for _, bad := range []forge.Request{
		{Ticket: "T-1"}, {Ticket: "T-1", Title: " \n"}, {Ticket: "T-1", Title: "x", Repository: "../x"},
	} {
		if _, err := s.Open(t.Context(), bad); abi.CodeOf(err) != abi.BadFields {
			t.Errorf("%.60v: %v", bad, err)
		}
	}
}

// What a ticket may have is cut to what forges take, and never refused: the work is done then.
func TestLongTexts(t *testing.T) {
	f := newFake(t, forge.GitHub)
	store, u := documents{}, f.url
	s := forge.New(forge.Options{
		Forge: f.client(t), URL: u, Update: func(_ context.Context, fn func(forge.Tx) error) error { return fn(store) },
		Work: func(context.Context, string, uint64) (forge.Work, error) {
			return forge.Work{Branch: "work", Base: "main", Commit: "c0ffee", Remote: u + "/o/r"}, nil
		},
	})
	for name, in := range map[string]forge.Request{
		"fits":       {Title: strings.Repeat("я", 255), Body: strings.Repeat("я", 65536)},
		"Cyrillic":   {Title: strings.Repeat("я", 256), Body: strings.Repeat("я", 65537)},
		"emoji":      {Title: strings.Repeat("😀", 250), Body: strings.Repeat("😀", 40000)},
		"ASCII":      {Title: strings.Repeat("x", 500), Body: strings.Repeat("x", 62000) + strings.Repeat("y", 62000)},
		"many lines": {Title: "one\ntwo\x00\r\nthree", Body: "a\x00b"},
	} {
		f.pulls, f.comments = nil, nil
		in.Ticket = "T-1"
		out, err := s.Open(t.Context(), in)
		if err != nil || out.Outcome != "opened" {
			t.Errorf("%s: %v", name, err)
			continue
		}
		title, body := f.pulls[0]["title"].(string), f.pulls[0]["body"].(string)
		if n := len(utf16.Encode([]rune(title))); n > 255 || strings.ContainsAny(title, "\r\n\x00") || name != "fits" && name != "many lines" && !strings.HasSuffix(title, "…") {
			t.Errorf("%s: title of %d characters: %.50q", name, n, title)
		}
		if n := len(utf16.Encode([]rune(body))); n > 65536 || strings.Contains(body, "\x00") || name != "fits" && name != "many lines" && !strings.Contains(body, "cut here") {
			t.Errorf("%s: body of %d characters", name, n)
		}
		if name == "fits" && (title != in.Title || body != in.Body) {
			t.Error("what fits is changed")
		}
		if c, err := s.Comment(t.Context(), "T-1", in.Body, "", "key"); err != nil || !c.Posted {
			t.Errorf("%s: comment: %+v, %v", name, c, err)
		} else if n := len(utf16.Encode([]rune(f.comments[0]["body"].(string)))); n > 65536 {
			t.Errorf("%s: comment of %d characters", name, n)
		}
	}
}

var (
	realURL   = flag.String("forge.url", "", "a real forge for TestRealForge, such as http://127.0.0.1:3000")
	realKind  = flag.String("forge.kind", "", "its kind")
	realToken = flag.String("forge.token", "", "a token that may write to the repository")
	realRepo  = flag.String("forge.repo", "", "OWNER/NAME of a repository for tests, with the branches -forge.head and -forge.base")
	realHead  = flag.String("forge.head", "work", "a branch that differs from the base, without a pull request")
	realBase  = flag.String("forge.base", "main", "the base")
)

// TestRealForge opens a pull request on a real server: go test ./host/forge -run RealForge
// -forge.url URL -forge.token TOKEN -forge.repo OWNER/NAME
func TestRealForge(t *testing.T) {
	if *realURL == "" {
		t.Skip("needs -forge.url")
	}
	c, err := forge.NewClient(forge.ClientOptions{URL: *realURL, Kind: *realKind, Token: func() (string, error) { return *realToken, nil }})
	if err != nil {
		t.Fatal(err)
	}
	r, err := forge.ParseRepository(*realRepo)
	if err != nil {
		t.Fatal(err)
	}
	in := forge.Open{Repository: r, Head: *realHead, Base: *realBase, Title: "a test", Body: "of **sentinel**"}
	p, made, err := c.OpenPull(t.Context(), in)
	if err != nil || !made || p.Number == 0 || p.State != forge.StateOpen || p.Head != *realHead || p.Base != *realBase || p.Commit == "" || p.URL == "" {
		t.Fatalf("open: %+v, %v, %v", p, made, err)
	}
	if again, made, err := c.OpenPull(t.Context(), in); err != nil || made || again != p {
		t.Errorf("again: %+v, %v, %v", again, made, err)
	}
	if got, err := c.Pull(t.Context(), r, p.Number); err != nil || got != p {
		t.Errorf("pull: %+v, %v", got, err)
	}
	key := time.Now().String()
	first, err := c.Comment(t.Context(), r, p.Number, "a comment", key)
	if err != nil || first == "" {
		t.Errorf("comment: %q, %v", first, err)
	}
	if again, err := c.Comment(t.Context(), r, p.Number, "a comment", key); err != nil || again != first {
		t.Errorf("the same comment: %q, %v", again, err)
	}
	in.Head = "no-such-branch"
	if _, _, err := c.OpenPull(t.Context(), in); abi.As(err) == nil || !abi.As(err).Permanent {
		t.Errorf("a branch that is missing: %v", err)
	} else {
		t.Log(err)
	}
	if _, err := c.Pull(t.Context(), r, 999999); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("a number that is missing: %v", err)
	}
	wrong, err := forge.NewClient(forge.ClientOptions{URL: *realURL, Kind: *realKind, Token: func() (string, error) { return "wrong-token", nil }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wrong.Pull(t.Context(), r, p.Number); abi.CodeOf(err) != abi.Denied {
		t.Errorf("a wrong token: %v", err)
	}
}
