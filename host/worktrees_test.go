package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// project makes a repository with one commit, of a user with nothing configured.
func project(t testing.TB) (dir string, git func(args ...string) string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not on this machine")
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir = t.TempDir()
	git = func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@t"}, args...)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", "-b", "main")
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	git("add", "a.txt")
	git("commit", "-q", "-m", "first")
	return dir, git
}

// inTree is a definition that works on a ticket: a run of its own, whose workspace is the
// worktree, writes a file and tries to leave.
const inTree = `{"name": "worker", "steps": [
	{"command": "ticket/claim", "params": {"role": "worker"}, "outputTo": "got"},
	{"command": "worktree/add", "params": {"ticket": "$got.ticket.id", "token": "$got.token"}, "outputTo": "tree"},
	{"command": "sentinel/run", "params": {"workspace": "$tree.path", "definition": {"name": "generate", "steps": [
		{"command": "code/write", "params": {"path": "made.txt", "content": "made\n"}},
		{"command": "code/edit", "params": {"path": "a.txt", "search": "one", "replace": "two"}},
		{"type": "shell", "command": "pwd > where.txt"},
		{"command": "code/read", "params": {"path": "../worktree.json"}, "onError": "skip", "outputTo": "outside"}
	]}}, "outputTo": "generated"},
	{"command": "worktree/commit", "params": {"ticket": "$got.ticket.id", "token": "$got.token", "message": "work"}, "outputTo": "commit"},
	{"command": "worktree/rebase", "params": {"ticket": "$got.ticket.id", "token": "$got.token"}, "outputTo": "rebase"},
	{"type": "verify", "ticketId": "$got.ticket.id", "branchName": "$tree.branch", "token": "$got.token", "outputTo": "verdict"},
	{"command": "worktree/push", "params": {"ticket": "$got.ticket.id", "token": "$got.token"}, "outputTo": "push"},
	{"command": "forge/open-pr", "params": {"ticket": "$got.ticket.id", "token": "$got.token", "title": "work"}, "outputTo": "pr"},
	{"command": "ticket/complete", "params": {"id": "$got.ticket.id", "token": "$got.token", "branch_name": "$tree.branch", "pull_request": {"branch": "$tree.branch", "commit": "$commit.commit"}}},
	{"command": "worktree/remove", "params": {"ticket": "$got.ticket.id"}}
]}`

func TestARunWorksInAWorktree(t *testing.T) {
	ws, git := project(t)
	h := open(t, host.Options{Workspace: ws, Dir: filepath.Join(t.TempDir(), ".sentinel")})
	must(t, h, "ticket/create", `{"id": "T-1", "title": "work", "acceptance_criteria": {"checks": [{"id": "made", "type": "file_exists", "verify": {"path": "made.txt"}}]}}`, nil)
	res := run(t, h, inTree, ws)
	if string(res.Status) != "completed" {
		t.Fatalf("run: %+v", res)
	}
	var tree struct{ Path, Branch string }
	var pr struct{ Outcome, State, Reason string }
	var push struct {
		Pushed bool
		Reason string
	}
	var verdict struct {
		Status string `json:"verification_status"`
	}
	for name, into := range map[string]any{"tree": &tree, "pr": &pr, "push": &push, "verdict": &verdict} {
		if err := json.Unmarshal(res.Variables[name], into); err != nil {
			t.Fatalf("%s: %s: %v", name, res.Variables[name], err)
		}
	}
	if verdict.Status != "passing" || pr.Outcome != "recorded" || pr.State != "open" || push.Pushed || !strings.Contains(push.Reason, "no remote") {
		t.Errorf("verdict %+v, push %+v, pull request %+v", verdict, push, pr)
	}
	if got := git("show", "sentinel/T-1:made.txt") + git("show", "sentinel/T-1:a.txt"); got != "madetwo" {
		t.Errorf("the branch has %q", got)
	}
	if got := git("show", "sentinel/T-1:where.txt"); got != tree.Path || strings.HasPrefix(got, ws) {
		t.Errorf("the shell worked in %s, the worktree is %s", got, tree.Path)
	}
	if !strings.Contains(string(res.Variables["generated"]), "outside the workspace") {
		t.Errorf("a path outside the worktree: %s", res.Variables["generated"])
	}
	if status := git("status", "--porcelain"); status != "" || git("symbolic-ref", "HEAD") != "refs/heads/main" {
		t.Errorf("the user's tree: %s", status)
	}
	var list struct{ Worktrees []any }
	must(t, h, "worktree/list", `{}`, &list)
	if _, err := os.Stat(tree.Path); len(list.Worktrees) > 0 || err == nil {
		t.Errorf("worktrees are left: %v, %v", list.Worktrees, err)
	}
	var shown struct {
		Branch string
		Number *int
		Live   bool
	}
	must(t, h, "forge/pr", `{"ticket": "T-1"}`, &shown)
	if shown.Branch != "sentinel/T-1" || shown.Number != nil || shown.Live {
		t.Errorf("got %+v", shown)
	}
	if err := call(t, h, "data/update", `{"collection": "pull_requests", "id": "T-1", "data": {"state": "merged"}}`, nil); abi.CodeOf(err) == "" {
		t.Error("a record of a pull request can be written")
	}
}

// TestForgeIsConfigured: the settings and a secret of the environment reach the forge, and
// the secret nothing else.
func TestForgeIsConfigured(t *testing.T) {
	const token = "forge-token-forge-token"
	ws, git := project(t)
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
		if r.Method == http.MethodGet {
			_, _ = w.Write([]byte("[]"))
			return
		}
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprintf(w, `{"message": "the token is %s"}`, token)
	}))
	defer server.Close()
	getenv := func(name string) string {
		if name == "SENTINEL_SECRET_FORGE_TOKEN" {
			return token
		}
		return os.Getenv(name)
	}
	dir := filepath.Join(t.TempDir(), ".sentinel")
	h := open(t, host.Options{Workspace: ws, Dir: dir, Getenv: getenv, Set: map[string]string{"forge.url": server.URL, "worktrees.most": "1"}})
	git("remote", "add", "origin", "ssh://git@127.0.0.1/o/r.git")
	must(t, h, "ticket/create", `{"id": "T-1", "title": "work"}`, nil)
	must(t, h, "ticket/create", `{"id": "T-2", "title": "work"}`, nil)
	var claim struct{ Token uint64 }
	must(t, h, "ticket/claim", `{"id": "T-1"}`, &claim)
	must(t, h, "ticket/claim", `{"id": "T-2"}`, nil)
	must(t, h, "worktree/add", `{"ticket": "T-1"}`, nil)
	if err := call(t, h, "worktree/add", `{"ticket": "T-2"}`, nil); abi.CodeOf(err) != abi.Limit || !strings.Contains(abi.As(err).Hint, "T-1") {
		t.Errorf("a second worktree: %v", err)
	}
	err := call(t, h, "forge/open-pr", `{"ticket": "T-1", "title": "work"}`, nil)
	if e := abi.As(err); e == nil || e.Code != abi.BadFields || strings.Contains(e.Message, token) {
		t.Errorf("got %+v", e)
	}
	want := "POST /api/v1/repos/o/r/pulls Bearer " + token
	if len(asked) != 3 || asked[1] != want {
		t.Errorf("asked %q", asked)
	}
	// The claim ends, so the next add removes its worktree.
	must(t, h, "ticket/release", fmt.Sprintf(`{"id": "T-1", "token": %d}`, claim.Token), nil)
	must(t, h, "worktree/add", `{"ticket": "T-2"}`, nil)
	if err := call(t, h, "worktree/commit", `{"ticket": "T-1", "message": "late"}`, nil); abi.CodeOf(err) != abi.Conflict {
		t.Errorf("a commit of a claim that has ended: %v", err)
	}
	// A start removes what belongs to claims that have ended.
	var second struct{ Ticket struct{ Fence uint64 } }
	must(t, h, "ticket/get", `{"id": "T-2"}`, &second)
	var list struct{ Worktrees []struct{ Path string } }
	must(t, h, "worktree/list", `{}`, &list)
	if err := os.WriteFile(filepath.Join(list.Worktrees[0].Path, "late.txt"), []byte("late"), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, h, "ticket/release", fmt.Sprintf(`{"id": "T-2", "token": %d}`, second.Ticket.Fence), nil)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h = open(t, host.Options{Workspace: ws, Dir: dir})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); h.RunTickets(ctx) }()
	for len(list.Worktrees) > 0 {
		must(t, h, "worktree/list", `{}`, &list)
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	<-done
	if got := git("show", "sentinel/T-2:late.txt"); got != "late" {
		t.Errorf("the work of the claim: %q", got)
	}
}

// A person removes a worktree that cannot be committed, and learns what is in no commit.
func TestForcedRemovalOfAWorktree(t *testing.T) {
	ws, _ := project(t)
	h := open(t, host.Options{Workspace: ws, Dir: filepath.Join(t.TempDir(), ".sentinel")})
	must(t, h, "ticket/create", `{"id": "T-1", "title": "work"}`, nil)
	must(t, h, "ticket/claim", `{"role": "worker"}`, nil)
	var tree struct{ Path string }
	must(t, h, "worktree/add", `{"ticket": "T-1"}`, &tree)
	for name, text := range map[string]string{"tree/b.txt": "work", "git/index": "damaged"} {
		if err := os.WriteFile(filepath.Join(filepath.Dir(tree.Path), filepath.FromSlash(name)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := call(t, h, "worktree/remove", `{"ticket": "T-1"}`, nil); err == nil || !strings.Contains(err.Error(), "is not removed") || !strings.Contains(abi.As(err).Hint, "a person removes it with force") {
		t.Errorf("without force: %v", err)
	}
	var out struct {
		Removed bool
		LeftOut []string `json:"left_out"`
		Kept    string
	}
	must(t, h, "worktree/remove", `{"ticket": "T-1", "force": true}`, &out)
	if text, err := os.ReadFile(filepath.Join(out.Kept, "tree", "b.txt")); !out.Removed || len(out.LeftOut) != 1 || string(text) != "work" {
		t.Errorf("%+v: %q, %v", out, text, err)
	}
}

// TestBranchesOfTicketsHideNothing: a ticket does not get a branch by whose name git means something else,
// neither from an agent nor from a person.
func TestBranchesOfTicketsHideNothing(t *testing.T) {
	dir, _ := project(t)
	h := open(t, host.Options{Workspace: dir})
	must(t, h, "ticket/create", `{"id": "T-1", "title": "x", "branch_name": "feature/x"}`, nil)
	for _, name := range []string{"origin/main", "6f71928", "refs/heads/main", "FETCH_HEAD", "HEAD~1", "sentinel-default"} {
		for command, params := range map[string]map[string]any{"ticket/create": {"title": "y"}, "ticket/update": {"id": "T-1"}} {
			params["branch_name"] = name
			text, err := json.Marshal(params)
			if err != nil {
				t.Fatal(err)
			}
			for by, err := range map[string]error{"agent": asAgent(t, h, command, params, nil), "person": call(t, h, command, string(text), nil)} {
				if e := abi.As(err); e == nil || e.Code != abi.BadFields || e.Field != "branch_name" {
					t.Errorf("%s by %s with branch %q: %v", command, by, name, err)
				}
			}
		}
	}
	var got struct {
		Ticket struct {
			Branch string `json:"branch_name"`
		}
	}
	if must(t, h, "ticket/update", `{"id": "T-1", "title": "z"}`, &got); got.Ticket.Branch != "feature/x" {
		t.Errorf("the branch is %q", got.Ticket.Branch)
	}
	if err := asAgent(t, h, "ticket/update", map[string]any{"id": "T-1", "branch_name": ""}, nil); err != nil {
		t.Error("to name none:", err)
	}
}

// TestBranchesOfAgentsAreOutOfTheWay: the branch that an agent names for a ticket is below work/, so that the ticket of a
// person gets the branch release/1.0. A person names any.
func TestBranchesOfAgentsAreOutOfTheWay(t *testing.T) {
	dir, _ := project(t)
	h := open(t, host.Options{Workspace: dir})
	must(t, h, "ticket/create", `{"id": "T-1", "title": "x", "branch_name": "release/1.0"}`, nil)
	if err := asAgent(t, h, "ticket/create", map[string]any{"id": "T-2", "title": "y"}, nil); err != nil {
		t.Fatal(err)
	}
	for command, params := range map[string]map[string]any{"ticket/create": {"title": "y"}, "ticket/update": {"id": "T-2"}} {
		params["branch_name"] = "release"
		if err := asAgent(t, h, command, params, nil); abi.CodeOf(err) != abi.Denied || abi.As(err).Field != "branch_name" || !strings.Contains(abi.As(err).Hint, "work/release") {
			t.Errorf("%s of an agent: %v", command, err)
		}
	}
	work := func(id string, add map[string]any) error {
		var claim struct{ Token uint64 }
		err := asAgent(t, h, "ticket/claim", map[string]any{"id": id}, &claim)
		add["ticket"], add["token"] = id, claim.Token
		if err == nil {
			err = asAgent(t, h, "worktree/add", add, nil)
		}
		return err
	}
	if err := work("T-2", map[string]any{"branch": "release"}); abi.CodeOf(err) != abi.Denied {
		t.Errorf("worktree/add of an agent: %v", err)
	}
	if err := asAgent(t, h, "ticket/update", map[string]any{"id": "T-2", "branch_name": "work/release"}, nil); err != nil {
		t.Error(err)
	}
	if err := asAgent(t, h, "worktree/add", map[string]any{"ticket": "T-2", "token": 1}, nil); err != nil {
		t.Errorf("the branch of the agent: %v", err)
	}
	if err := work("T-1", map[string]any{}); err != nil {
		t.Errorf("the branch of the person: %v", err)
	}
}
