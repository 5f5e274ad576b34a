package host_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/principal"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// keyed makes requests with an idempotency key, as the kind of a token and a persona.
func keyed(t *testing.T, h *host.Host) func(key, token, as, target, body string) (int, string) {
	t.Helper()
	a, err := api.New(api.Options{Commands: registryOf{h}, Tokens: kindTokens{}})
	if err != nil {
		t.Fatal(err)
	}
	srv := serveAPI(t, a)
	return func(key, token, as, target, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+target, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
		if key != "" {
			req.Header.Set("Idempotency-Key", key)
		}
		if as != "" {
			req.Header.Set(principal.Header, as)
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
		return res.StatusCode, string(text)
	}
}

// resultID returns the id of the run, event, message or ticket in an answer.
func resultID(t *testing.T, answer string) string {
	t.Helper()
	var out struct {
		ID     string
		Ticket struct{ ID string }
	}
	if err := json.Unmarshal([]byte(answer), &out); err != nil || out.ID+out.Ticket.ID == "" {
		t.Fatalf("%v: %s", err, answer)
	}
	return out.ID + out.Ticket.ID
}

// TestKeyCountsPerPrincipal: the same key of a person, of a persona and of an agent are three
// keys, in the header and in the parameter; another request under a key is 409.
func TestKeyCountsPerPrincipal(t *testing.T) {
	h := open(t, host.Options{})
	must(t, h, "sentinel/create", `{"definition":{"name":"One","steps":[{"type":"set","values":{"a":"1"}}]}}`, nil)
	must(t, h, "sentinel/create", `{"definition":{"name":"Two","steps":[{"type":"set","values":{"a":"1"}}]}}`, nil)
	send := keyed(t, h)
	for _, c := range []struct{ target, body, other, differs string }{
		{"/v1/sentinels/one/runs", `{}`, `{"inputs":{"x":1}}`, "inputs"},
		{"/v1/commands/sentinel/start", `{"sentinelId":"one"}`, `{"sentinelId":"two"}`, "sentinelId"},
		{"/v1/commands/events/emit", `{"event":"a:b","data":{"n":1}}`, `{"event":"a:b","data":{"n":2}}`, "data"},
		{"/v1/commands/collaboration/chat/send", `{"room":"r","message":"a"}`, `{"room":"r","message":"b"}`, "message"},
		{"/v1/commands/ticket/create", `{"title":"a"}`, `{"title":"b"}`, "title"},
	} {
		key := "deploy" + strings.ReplaceAll(c.target, "/", "-")
		of := map[string]string{} // result -> who
		for _, who := range [][2]string{{"agent", ""}, {"person", ""}, {"person", "ann"}, {"person", "agent:other"}} {
			status, answer := send(key, who[0], who[1], c.target, c.body)
			if status != 200 && status != 201 {
				t.Fatalf("%s as %q: %d %s", c.target, who, status, answer)
			}
			id := resultID(t, answer)
			if first, taken := of[id]; taken {
				t.Errorf("%s: %q got %s, which is of %s", c.target, who, id, first)
			}
			of[id] = strings.Join(who[:], " ")
			if status, answer = send(key, who[0], who[1], c.target, " "+c.body); resultID(t, answer) != id {
				t.Errorf("%s as %q again: %d %s, want %s", c.target, who, status, answer, id)
			}
			status, answer = send(key, who[0], who[1], c.target, c.other)
			if status != http.StatusConflict || !strings.Contains(answer, key) || !strings.Contains(answer, "another value of "+c.differs) {
				t.Errorf("%s with other parameters as %q: %d %s", c.target, who, status, answer)
			}
		}
	}
}

// TestKeyParameterIsTheHeader: a key in the parameter of a command is the same key as in the
// header, and a key of one command means nothing for another.
func TestKeyParameterIsTheHeader(t *testing.T) {
	h := open(t, host.Options{})
	must(t, h, "sentinel/create", `{"definition":{"name":"One","steps":[{"type":"set","values":{"a":"1"}}]}}`, nil)
	send := keyed(t, h)
	_, answer := send("", "person", "", "/v1/commands/sentinel/start", `{"sentinelId":"one","key":"k"}`)
	id := resultID(t, answer)
	if _, answer := send("k", "person", "", "/v1/commands/sentinel/start", `{"sentinelId":"one"}`); resultID(t, answer) != id {
		t.Errorf("by header %s, want %s", answer, id)
	}
	if _, answer := send("", "agent", "", "/v1/commands/sentinel/start", `{"sentinelId":"one","key":"k"}`); resultID(t, answer) == id {
		t.Errorf("the parameter of an agent found the run of a person: %s", answer)
	}
	if _, err := h.Runtime().Wait(t.Context(), sentinels.RunID(id)); err != nil {
		t.Fatal(err)
	}
	if _, answer := send("k", "person", "", "/v1/commands/sentinel/retry", `{"run":"`+id+`"}`); resultID(t, answer) == id {
		t.Errorf("retry found the run of start: %s", answer)
	}
	_, answer = send("k", "person", "", "/tickets", `{"title":"a"}`)
	if _, again := send("", "person", "", "/tickets", `{"title":"a","key":"k"}`); resultID(t, again) != resultID(t, answer) {
		t.Errorf("ticket by parameter %s, by header %s", again, answer)
	}
}

// TestKeyOfARefusedRequestIsFree: a request that was refused, and so did nothing, does not
// bind its key.
func TestKeyOfARefusedRequestIsFree(t *testing.T) {
	h := open(t, host.Options{})
	must(t, h, "sentinel/create", `{"definition":{"name":"One","steps":[{"type":"set","values":{"a":"1"}}]}}`, nil)
	send := keyed(t, h)
	for _, wrong := range []string{`{"sentinelId":"wrong"}`, `{"sentinelId":7}`, `{"sentinelId":"one","sentinelId":"one"}`} {
		if status, answer := send("k", "person", "", "/v1/commands/sentinel/start", wrong); status != 404 && status != 400 {
			t.Errorf("%s: %d %s", wrong, status, answer)
		}
	}
	if status, answer := send("k", "person", "", "/v1/commands/sentinel/start", `{"sentinelId":"one"}`); status != 200 {
		t.Errorf("corrected: %d %s", status, answer)
	}
}

// TestKeyOfAStepIsNotOfARequest: the key that a step chooses for a start counts for runs of
// the same principal, and cannot be that of a request.
func TestKeyOfAStepIsNotOfARequest(t *testing.T) {
	h := open(t, host.Options{})
	must(t, h, "sentinel/create", `{"definition":{"name":"One","steps":[{"type":"set","values":{"a":"1"}}]}}`, nil)
	start := func(as, params string) (string, error) {
		out, err := h.CallAs(t.Context(), &command.Call{Command: "sentinel/start", Params: json.RawMessage(params), By: command.ByStep, As: as, Sentinel: "s", Key: "step"})
		if err != nil {
			return "", err
		}
		return resultID(t, string(out)), nil
	}
	first, err := start("", `{"sentinelId":"one","key":"daily"}`)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := start("", `{"sentinelId":"one","key":"daily","inputs":{"n":2}}`); again != first || err != nil {
		t.Errorf("again: %s, %v, want %s", again, err, first)
	}
	if other, err := start("agent:ci", `{"sentinelId":"one","key":"daily"}`); other == first || err != nil {
		t.Errorf("a run of an agent got %s, %v", other, err)
	}
	if _, err := start("", `{"sentinelId":"one","key":"by/x"}`); err == nil || !strings.Contains(err.Error(), "reserved for keys of requests") {
		t.Errorf("a reserved key: %v", err)
	}
}

// TestKeyOfAModelIsItsOwn: the key that a model chooses for a start is neither that of a step nor that of
// another request.
func TestKeyOfAModelIsItsOwn(t *testing.T) {
	h := open(t, host.Options{})
	must(t, h, "sentinel/create", `{"definition":{"name":"One","steps":[{"type":"set","values":{"a":"1"}}]}}`, nil)
	start := func(by command.By, params string) string {
		t.Helper()
		out, err := h.CallAs(t.Context(), &command.Call{Command: "sentinel/start", Params: json.RawMessage(params), By: by, Sentinel: "s", Key: "step", Tools: []string{"sentinel/start"}})
		if err != nil {
			t.Fatal(err)
		}
		return resultID(t, string(out))
	}
	const daily = `{"sentinelId":"one","key":"daily"}`
	model := start(command.ByModel, daily)
	if again := start(command.ByModel, daily); again != model {
		t.Errorf("again: %s, want %s", again, model)
	}
	if other := start(command.ByModel, `{"sentinelId":"one","key":"daily","pinned":true}`); other == model {
		t.Error("another request of the model got the same run")
	}
	if step := start(command.ByStep, daily); step == model {
		t.Error("a step got the run of a model")
	}
}
