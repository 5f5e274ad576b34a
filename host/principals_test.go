package host_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/audit"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/internal/httpproblem"
	"github.com/sentinel-runtime/sentinel/host/principal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// kindTokens are tokens called like the principal they stand for.
type kindTokens struct{}

func (kindTokens) Who(token string) (principal.Principal, bool) {
	p := principal.Principal{Kind: principal.Kind(token), Name: "t"}
	if p.Kind == principal.Person { // that of `sentinel token` has no name
		p.Name = ""
	}
	return p, slices.Contains(principal.Kinds(), p.Kind)
}

// sendAs makes requests of a host's API with a token, and header Sentinel-As if as is set.
func sendAs(t *testing.T, h *host.Host) func(token, as, method, target, body string) (int, httpproblem.Problem, []byte) {
	t.Helper()
	a, err := api.New(api.Options{Commands: registryOf{h}, Tokens: kindTokens{}})
	if err != nil {
		t.Fatal(err)
	}
	srv := serveAPI(t, a)
	return func(token, as, method, target, body string) (int, httpproblem.Problem, []byte) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+target, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("If-Match", "*")
		if as != "" {
			req.Header.Set(principal.Header, as)
		}
		if body != "" {
			req.Header.Set("Content-Type", "application/json")
		}
		res, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		var p httpproblem.Problem
		_ = json.Unmarshal(text, &p)
		return res.StatusCode, p, text
	}
}

// TestSpecViewerReads: "A viewer reads". Every route and every command that changes
// something is refused with 403, and those that read are not.
func TestSpecViewerReads(t *testing.T) {
	h := open(t, host.Options{})
	send := sendAs(t, h)
	_, _, text := send("person", "", "GET", "/openapi.json", "")
	var doc struct {
		Paths map[string]map[string]struct {
			Command string `json:"x-sentinel-command"`
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	refused, read := 0, 0
	check := func(method, target string, reads bool) {
		t.Helper()
		status, p, _ := send("viewer", "", method, target, `{}`)
		if denied := status == http.StatusForbidden && strings.Contains(p.Detail, "viewer t may only read"); denied == reads {
			t.Errorf("%s %s: %d %s, reads: %v", method, target, status, p.Detail, reads)
		}
		if reads {
			read++
		} else {
			refused++
		}
	}
	parts := regexp.MustCompile(`\{[^}]+\}`)
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for method, op := range doc.Paths[path] {
			method = strings.ToUpper(method)
			if method == http.MethodGet || strings.HasPrefix(path, "/v1/hooks") || strings.HasPrefix(path, "/v1/commands/") {
				continue // a hook has a secret of its own; commands are below
			}
			c, ok := h.Commands().Lookup(op.Command)
			if !ok {
				t.Errorf("%s %s: unknown command %q", method, path, op.Command)
			}
			check(method, parts.ReplaceAllString(path, "1"), c.ReadOnly())
		}
	}
	for _, c := range h.Commands().List() {
		check("POST", "/v1/commands/"+c.Name, c.ReadOnly())
	}
	if refused < 60 || read < 30 {
		t.Errorf("%d refused, %d read", refused, read)
	}
	if status, _, _ := send("viewer", "", "GET", "/tickets", ""); status != http.StatusOK {
		t.Errorf("GET /tickets: %d", status)
	}
}

// TestSpecAgentDecidesNothing: "an agent can never decide an approval, grant, edit
// configuration or make tokens; steps and model calls are agents".
func TestSpecAgentDecidesNothing(t *testing.T) {
	h := open(t, host.Options{Workspace: t.TempDir(), Set: map[string]string{"tickets.unverified": "true"}})
	send := sendAs(t, h)
	decisions := map[string]string{
		"sentinel/decide": `{"run": "01a20998-4961-7212-a55f-f9a0ad2199df", "verdict": "approve"}`,
		"ticket/decide":   `{"id": "T-1", "action": "accept"}`, "ticket/decide-rule": `{"rule": "R-1", "action": "accept"}`,
		"plugin/allow": `{"name": "x"}`, "plugin/deny": `{"name": "x"}`,
		"checkpoint/restore": `{"run": "01a20998-4961-7212-a55f-f9a0ad2199df"}`,
		"sentinel/accept":    `{"sentinelId": "x", "revision": 1}`,
	}
	for _, c := range h.Commands().List() {
		if _, ok := decisions[c.Name]; ok != (c.Effect == command.Decides) {
			t.Errorf("%s: effect %s", c.Name, c.Effect)
		}
	}
	for name, params := range decisions {
		if status, p, _ := send("agent", "", "POST", "/v1/commands/"+name, params); status != http.StatusForbidden || !strings.Contains(p.Detail, "only a person decides") {
			t.Errorf("agent, %s: %d %s", name, status, p.Detail)
		}
		if status, p, _ := send("person", "agent:ci", "POST", "/v1/commands/"+name, params); status != http.StatusForbidden || !strings.Contains(p.Detail, "only a person decides") {
			t.Errorf("person as agent, %s: %d %s", name, status, p.Detail)
		}
		for _, by := range []command.By{command.ByStep, command.ByModel, command.ByAgent} {
			_, err := h.CallAs(t.Context(), &command.Call{Command: name, Params: json.RawMessage(params), By: by, Tools: []string{name}})
			if abi.CodeOf(err) != abi.Denied {
				t.Errorf("%s by a %s: %v", name, by, err)
			}
		}
		if status, _, _ := send("person", "", "POST", "/v1/commands/"+name, params); status != http.StatusNotFound {
			t.Errorf("person, %s: %d, want 404", name, status)
		}
	}
	// Nor what is not committed of a worktree.
	for _, by := range []command.By{command.ByStep, command.ByModel, command.ByAgent} {
		_, err := h.CallAs(t.Context(), &command.Call{Command: "worktree/remove", Params: json.RawMessage(`{"ticket": "T-1", "token": 1, "force": true}`), By: by, Tools: []string{"worktree/remove"}})
		if abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "only a person") {
			t.Errorf("worktree/remove with force by a %s: %v", by, err)
		}
	}
	for target, body := range map[string]string{
		"/v1/commands/code/write":    `{"path": ".sentinel/config.json", "content": "{}"}`,
		"/v1/commands/ticket/update": `{"id": "T-1", "state": "done"}`,
		"/v1/commands/ticket/delete": `{"id": "T-1"}`,
	} {
		if status, p, _ := send("agent", "", "POST", target, body); status != http.StatusForbidden {
			t.Errorf("agent, %s: %d %s", target, status, p.Detail)
		}
	}
	// What an agent writes as a check needs the approval of a person.
	_, _, text := send("agent", "", "POST", "/tickets", `{"title": "x", "acceptance_criteria": {"checks": [{"id": "a", "type": "test_pass", "verify": {"command": "true"}}]}}`)
	if !strings.Contains(string(text), `"created_by":"agent:t"`) || !strings.Contains(string(text), "approv") {
		t.Errorf("ticket of an agent: %s", text)
	}
	for as, status := range map[string]int{"agent:x": 403, "ann": 403} {
		if got, p, _ := send("agent", as, "GET", "/tickets", ""); got != status || !strings.Contains(p.Detail, "acts under no other name") {
			t.Errorf("agent as %s: %d %s", as, got, p.Detail)
		}
	}
	for _, as := range []string{"god:x", "a b", "agent:", "../x", strings.Repeat("x", 65)} {
		if got, p, _ := send("person", as, "GET", "/tickets", ""); got != http.StatusBadRequest {
			t.Errorf("person as %q: %d %s", as, got, p.Detail)
		}
	}
}

// TestSpecPersonas: "createdBy and decidedBy record the principal, --as NAME for personas,
// inherited by child runs".
func TestSpecPersonas(t *testing.T) {
	h := open(t, host.Options{Workspace: t.TempDir()})
	send := sendAs(t, h)
	child := `{"type": "sentinel", "definition": {"name": "child", "steps": [{"type": "set", "values": {"who": "$PERSONA_ID"}}]}, "outputTo": "child"}`
	define := func(name string) string {
		return fmt.Sprintf(`{"name": %q, "createdBy": "maker", "steps": [{"type": "set", "values": {"me": "$PERSONA_ID"}}, %s, {"command": "sentinel/start", "params": {"definition": {"name": "other", "steps": [{"type": "set", "values": {"who": "$PERSONA_ID"}}]}}, "outputTo": "other"}, {"command": "sentinel/await", "params": {"run": "$other.run"}, "outputTo": "ended"}]}`, name, child)
	}
	if status, p, _ := send("person", "ann", "POST", "/v1/sentinels", `{"name": "mine", "steps": [{"type": "shell", "command": "true"}]}`); status != http.StatusCreated {
		t.Fatal(p)
	}
	if status, p, _ := send("agent", "", "POST", "/v1/sentinels", define("theirs")); status != http.StatusCreated {
		t.Fatal(p)
	}
	if status, p, _ := send("person", "", "POST", "/v1/sentinels", define("plain")); status != http.StatusCreated {
		t.Fatal(p)
	}
	for name, want := range map[string]string{"mine": "ann", "theirs": "agent:t", "plain": "maker"} {
		var list struct {
			Sentinels []struct{ SentinelID string }
		}
		must(t, h, "sentinel/list", map[string]any{"personaId": want}, &list)
		if len(list.Sentinels) != 1 || list.Sentinels[0].SentinelID != name {
			t.Errorf("created by %s: %+v, want %s", want, list, name)
		}
	}
	for _, c := range []struct{ token, as, want string }{{"person", "bob", "bob"}, {"agent", "", "agent:t"}, {"person", "", "maker"}} {
		_, _, text := send(c.token, c.as, "POST", "/v1/commands/sentinel/run", `{"sentinelId": "plain"}`)
		var res struct {
			Run       string
			Status    string
			Variables map[string]json.RawMessage
		}
		if err := json.Unmarshal(text, &res); err != nil || res.Status != "completed" {
			t.Fatalf("%s", text)
		}
		all := string(res.Variables["me"]) + string(res.Variables["child"]) + string(res.Variables["ended"])
		var me string
		_ = json.Unmarshal(res.Variables["me"], &me)
		if me != c.want || !strings.Contains(string(res.Variables["ended"]), c.want) {
			t.Errorf("%+v: %s", c, all)
		}
		if c.want != "maker" && !strings.Contains(string(res.Variables["child"]), c.want) {
			t.Errorf("%+v: the child has %s", c, res.Variables["child"])
		}
		if c.want != "maker" {
			var info struct{ State struct{ As string } }
			must(t, h, "sentinel/status", map[string]any{"run": res.Run}, &info)
			if info.State.As != c.want {
				t.Errorf("%+v: the run is of %q", c, info.State.As)
			}
		}
	}
}

// TestSpecAuditLog: "an audit log of everything that changes something". Reads are not in
// it, secrets are not, and what was denied is.
func TestSpecAuditLog(t *testing.T) {
	ws := t.TempDir()
	h := open(t, host.Options{Workspace: ws})
	if err := h.Redact("hunter2-secret-value"); err != nil {
		t.Fatal(err)
	}
	send := sendAs(t, h)
	before := time.Now().Add(-time.Second)
	send("person", "ann", "POST", "/tickets", `{"title": "with hunter2-secret-value in it"}`)
	send("agent", "", "POST", "/v1/commands/ticket/decide", `{"id": "T-1", "action": "accept"}`)
	send("person", "", "POST", "/tickets/T-1/decide", `{"action": "hold", "comment": "later"}`)
	send("person", "", "GET", "/tickets/T-1", "")
	if res := run(t, h, `{"name": "w", "steps": [{"command": "ticket/create", "params": {"title": "of a step"}}, {"command": "code/write", "params": {"path": "a.txt", "content": "x"}}, {"type": "shell", "command": "true"}]}`, ws); string(res.Status) != "completed" {
		t.Fatal(res)
	}
	var out struct{ Entries []audit.Entry }
	must(t, h, "audit/list", map[string]any{"since": before.UTC().Format(time.RFC3339Nano)}, &out)
	var got []string
	for _, e := range slices.Backward(out.Entries) {
		got = append(got, fmt.Sprintf("%s %s %s %s %s", e.Level, e.Category, e.Event, e.Actor, e.Outcome))
		if strings.Contains(string(e.Details), "hunter2") {
			t.Errorf("a secret: %s", e.Details)
		}
	}
	want := []string{
		"info action ticket/create ann ok", "warn security ticket/decide agent:t denied", "info decision ticket/decide user ok",
		"info agent ticket/create step of w ok",
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("no %q in\n%s", w, strings.Join(got, "\n"))
		}
	}
	for _, not := range []string{"ticket/get", "code/write", "shell"} {
		if strings.Contains(strings.Join(got, "\n"), not) {
			t.Errorf("%s is in\n%s", not, strings.Join(got, "\n"))
		}
	}
	must(t, h, "audit/list", map[string]any{"actor": "agent:t", "event": "ticket/*"}, &out)
	if len(out.Entries) != 1 {
		t.Errorf("of the agent: %+v", out.Entries)
	}
}
