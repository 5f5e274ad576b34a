package host_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// The table of principals in SECURITY.md begins behind this heading. What a principal may
// call is not written down: each command is called, with a parameter that it does not have,
// and the answer is that of the parameter or that the principal may not call it.
const principalsHead = "## Who may do what\n"

const principalsText = `Every command declares what a call does at most ([COMMANDS.md](host/COMMANDS.md)). This table is made by calling each of them as each principal; a test compares it.

| principal | known by | reads | changes | executes | configures | decides | without a token |
|---|---|---|---|---|---|---|---|
`

// TestPrincipalsPage compares the table in SECURITY.md with what a host refuses.
func TestPrincipalsPage(t *testing.T) {
	h := open(t, host.Options{})
	var b strings.Builder
	b.WriteString(principalsHead + principalsText)
	for _, p := range principalsOf(t, h) {
		fmt.Fprintf(&b, "| %s | %s |", p.name, p.known)
		for _, effect := range []command.Effect{command.Reads, command.Changes, command.Executes, command.Configures, command.Decides} {
			fmt.Fprintf(&b, " %s |", p.cell(t, h, effect))
		}
		fmt.Fprintf(&b, " %s |\n", p.open)
	}
	b.WriteByte('\n')
	text, err := os.ReadFile("../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), principalsHead)
	_, after, ended := strings.Cut(rest, "\n\n|") // the blank line before the table
	if found && ended {
		_, after, ended = strings.Cut(after, "\n\n")
	}
	if !found || !ended {
		t.Fatalf("SECURITY.md has no part %q with a table and an end", principalsHead)
	}
	page := before + b.String() + after
	if *update {
		if err := os.WriteFile("../SECURITY.md", []byte(page), 0o644); err != nil { //nolint:gosec // it is committed
			t.Fatal(err)
		}
		return
	}
	if page != string(text) {
		t.Errorf("the table of SECURITY.md differs from what is refused: make commands\n%s", b.String())
	}
}

// A pagePrincipal is a row of the table.
type pagePrincipal struct {
	name, known, open string
	refuses           func(name string) bool // with a parameter that no command has
}

// cell says which commands of an effect the principal may call.
func (p pagePrincipal) cell(t *testing.T, h *host.Host, effect command.Effect) string {
	t.Helper()
	refused, all := 0, 0
	for _, c := range h.Commands().List() {
		if c.Effect != effect {
			continue
		}
		all++
		if p.refuses(c.Name) {
			refused++
		}
	}
	switch {
	case all == 0:
		t.Fatalf("no command %s", effect)
	case refused == 0:
		return "yes"
	case refused == all:
		return "no"
	}
	return "some"
}

func principalsOf(t *testing.T, h *host.Host) []pagePrincipal {
	t.Helper()
	const nonsense = `{"no_such_parameter": 1}`
	send := sendAs(t, h)
	byToken := func(token string) func(string) bool {
		return func(name string) bool {
			status, p, text := send(token, "", http.MethodPost, "/v1/commands/"+name, nonsense)
			switch status {
			case http.StatusForbidden:
				return true
			case http.StatusBadRequest, http.StatusUnprocessableEntity:
				return false
			}
			t.Fatalf("%s as %s: %d %s %s", name, token, status, p.Detail, text)
			return false
		}
	}
	call := func(by command.By, tools, within func(name string) []string) func(string) bool {
		return func(name string) bool {
			c := &command.Call{Command: name, Params: json.RawMessage(nonsense), By: by, Tools: tools(name), Within: within(name), Workspace: h.Workspace()}
			_, err := h.Commands().Call(t.Context(), c)
			if abi.CodeOf(err) != abi.Denied && abi.CodeOf(err) != abi.BadFields {
				t.Fatalf("%s by %s: %v", name, by, err)
			}
			return abi.CodeOf(err) == abi.Denied
		}
	}
	none := func(string) []string { return nil }
	exactly := func(name string) []string { return []string{name} }
	family := func(name string) []string {
		first, _, _ := strings.Cut(name, "/")
		return []string{"*", first + "/*"}
	}
	raw := func(header map[string]string) func(string) bool {
		a, err := api.New(api.Options{Commands: registryOf{h}, Tokens: kindTokens{}})
		if err != nil {
			t.Fatal(err)
		}
		srv := serveAPI(t, a)
		return func(name string) bool {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/v1/commands/"+name, strings.NewReader(nonsense))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			for key, value := range header {
				req.Header.Set(key, value)
			}
			res, err := srv.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = res.Body.Close() }()
			return res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden
		}
	}
	const health, hooks = "`/health` `/ready`", "`/health` `/ready`, `/v1/hooks/...` with the secret of the trigger"
	return []pagePrincipal{
		{"person (also who operates the host)", "token of the state folder, from a process that is not below a step; the terminal", health, byToken("person")},
		{"agent", "token of `sentinel token new --as agent`; a process below a step or a check, whatever its token", health, byToken("agent")},
		{"viewer", "token of `sentinel token new --as viewer`", health, byToken("viewer")},
		{"step of a definition", "the engine; a person wrote or trusted the definition", "", call(command.ByStep, none, none)},
		{"model, commands that `tools` names", "the engine", "", call(command.ByModel, exactly, none)},
		{"model, commands that a pattern in `tools` matches", "the engine", "", call(command.ByModel, family, none)},
		{"step of a definition that a model made", "the engine, which has the tools of the model, here those that patterns match", "", call(command.ByStep, none, family)},
		{"worker's code in a check", "confined: it sees no control socket; over TCP, if its network is open, it is an agent", health, byToken("agent")},
		{"plugin", "the engine: commands that its grant names, as a step", "", call(command.ByStep, none, none)},
		{"sender of webhooks", "secret of the trigger", hooks, raw(nil)},
		{"web page in the same browser", "header `Origin`, whatever token it sends", "", raw(map[string]string{"Origin": "https://page.example", "Authorization": "Bearer person"})},
	}
}
