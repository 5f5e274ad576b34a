package host_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A message as the webhook of the tests gets it.
type message struct {
	ID, Type string
	Data     struct{ Title, Text, Severity, Event, Ticket, Run string }
}

// A receiver is a webhook that verifies signatures with the library of Standard Webhooks.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []message
	answer func(n int) int // status of the n-th answer, from 1; default 204
}

// signingKey is the secret of the webhook, and of nothing else.
var signingKey = "whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdef01234567"))

// notified opens a host with the webhook and with the shipped sentinel notify armed.
func notified(t *testing.T, answer func(n int) int) (*host.Host, *receiver) {
	t.Helper()
	wh, err := standardwebhooks.NewWebhook(signingKey)
	if err != nil {
		t.Fatal(err)
	}
	v := &receiver{answer: answer}
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m := message{ID: r.Header.Get("webhook-id")}
		if err := wh.Verify(body, r.Header); err != nil {
			t.Errorf("%v: %s", err, body)
		}
		if err := json.Unmarshal(body, &m); err != nil {
			t.Error(err)
		}
		v.mu.Lock()
		v.got = append(v.got, m)
		n := len(v.got)
		v.mu.Unlock()
		status := http.StatusNoContent
		if v.answer != nil {
			status = v.answer(n)
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(v.Close)
	h := open(t, host.Options{Workspace: t.TempDir(), Set: map[string]string{"notify.webhook": v.URL + "/hook", "notify.secret": "NOTIFY_KEY"}, Getenv: func(name string) string {
		if name == "SENTINEL_SECRET_NOTIFY_KEY" {
			return signingKey
		}
		return os.Getenv(name)
	}})
	text, _ := sentinels.ShippedText("notify")
	must(t, h, "sentinel/create", map[string]any{"definition": json.RawMessage(text)}, nil)
	if err := h.Runtime().Arm(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h, v
}

// messages waits for so many messages of runs that have ended.
func (v *receiver) messages(t *testing.T, h *host.Host, runs, want int) []message {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		list, err := h.Runtime().Runs(runtime.RunFilter{Sentinel: "notify"})
		if err != nil {
			t.Fatal(err)
		}
		ended := 0
		for _, r := range list {
			if !r.EndedAt.IsZero() {
				ended++
			}
		}
		v.mu.Lock()
		got := append([]message{}, v.got...)
		v.mu.Unlock()
		if ended == runs && len(list) == runs && len(got) == want {
			return got
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d runs of notify, %d have ended, want %d; %d messages, want %d: %+v", len(list), ended, runs, len(got), want, got)
		}
	}
}

// A schedule whose run does not come is announced, with the reason and a line to type.
func TestNotifiedOfOverdueRuns(t *testing.T) {
	h, v := notified(t, nil)
	must(t, h, "sentinel/create", `{"definition": {"id": "backup", "name": "b", "steps": [], "loop": {"type": "once"},
		"trigger": {"type": "schedule", "cronExpression": "0 0 1 1 *", "catchUp": "none", "expectWithinMs": 1000}}}`, nil)
	must(t, h, "sentinel/create", `{"definition": {"id": "often", "name": "o", "steps": [], "loop": {"type": "once"},
		"trigger": {"type": "schedule", "cronExpression": "*/20 * * * * *", "expectWithinMs": 1000}}}`, nil)
	if err := h.Runtime().PauseTriggers(t.Context(), "often", runtime.TriggerPause{}); err != nil {
		t.Fatal(err)
	}
	got := v.messages(t, h, 1, 1)[0]
	if got.Type != "sentinel:often:overdue" || got.Data.Severity != "error" || got.Data.Title != "No run of often began in time" ||
		!strings.HasPrefix(got.Data.Text, "It was planned for 20") || !strings.Contains(got.Data.Text, ": the triggers are paused\n\nsentinel triggers often") {
		t.Errorf("%+v", got)
	}
}

// S003: "TODO: Send notification (Slack, email, dashboard alert)". A ticket that enters a
// state in which a person decides is announced once, with the line to type.
func TestSpecNotifiedOfTickets(t *testing.T) {
	h, v := notified(t, nil)
	escalate := func(id string) {
		t.Helper()
		must(t, h, "ticket/create", map[string]any{"id": id, "title": "Repair \x1b[2J " + signingKey}, nil)
		must(t, h, "ticket/claim", map[string]any{"id": id}, nil)
		must(t, h, "ticket/escalate", map[string]any{"id": id, "reason": "verification failed 3 times"}, nil)
	}
	escalate("T-1")
	got := v.messages(t, h, 1, 1)[0]
	if got.Type != "ticket:update" || got.Data.Ticket != "T-1" || got.Data.Severity != "warning" || !strings.HasPrefix(got.Data.Title, `Ticket T-1 waits for a person: Repair \x1b[2J `) ||
		!strings.Contains(got.Data.Text, "It is blocked: verification failed 3 times\n") || !strings.Contains(got.Data.Text, "\nsentinel decide T-1 release|accept|reject|hold") {
		t.Errorf("%+v", got)
	}
	if strings.Contains(got.Data.Title, signingKey[6:]) {
		t.Errorf("the title has a secret: %s", got.Data.Title)
	}
	// Events of a ticket that waits already, and decisions of a person, add no entry.
	if err := call(t, h, "verify/run", `{"ticket_id": "T-1", "branch_name": "none"}`, nil); err != nil {
		t.Fatal(err)
	}
	must(t, h, "ticket/decide", `{"id": "T-1", "action": "hold", "comment": "later"}`, nil)
	must(t, h, "ticket/decide", `{"id": "T-1", "action": "release"}`, nil)
	must(t, h, "ticket/claim", `{"id": "T-1"}`, nil)
	must(t, h, "ticket/escalate", `{"id": "T-1"}`, nil) // again
	escalate("T-2")
	v.messages(t, h, 3, 3)
	// A reason of several lines adds none that looks like one to type.
	must(t, h, "ticket/create", map[string]any{"id": "T-3", "title": "x"}, nil)
	must(t, h, "ticket/claim", map[string]any{"id": "T-3"}, nil)
	must(t, h, "ticket/escalate", map[string]any{"id": "T-3", "reason": "stuck\nsentinel decide T-9 accept"}, nil)
	list := v.messages(t, h, 4, 4)
	if text := list[3].Data.Text; !strings.Contains(text, "stuck\n  sentinel decide T-9 accept\n") || !strings.Contains(text, "\nsentinel decide T-3 ") {
		t.Errorf("lines of a reason: %q", text)
	}
	if list[1].ID == list[0].ID || list[2].ID == list[1].ID {
		t.Errorf("ids %q %q %q: want one of each entry", list[0].ID, list[1].ID, list[2].ID)
	}
}

// Runs that wait for a decision, and runs that have failed, are announced; the failure of a
// child is its parent's, and notify does not notify of its own runs.
func TestNotifiedOfRuns(t *testing.T) {
	h, v := notified(t, func(n int) int {
		if n == 3 {
			return http.StatusForbidden // for good
		}
		return http.StatusOK
	})
	start := func(definition string) sentinels.RunID {
		t.Helper()
		def, problems := h.Runtime().Decode([]byte(definition), "test.json")
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		id, err := h.Runtime().Start(t.Context(), def, runtime.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	asks := start(`{"name": "ask", "steps": [{"type": "approve", "prompt": "Deploy?"}]}`)
	typed := regexp.MustCompile(`Deploy\?\nsentinel decide ` + string(asks) + ` ([0-9a-f]{12}) approve\|reject`)
	got := v.messages(t, h, 1, 1)[0]
	if got.Type != "sentinel:ask:waiting" || got.Data.Run != string(asks) || got.Data.Title != "A run of ask waits for a person" || !typed.MatchString(got.Data.Text) {
		t.Errorf("%+v", got)
	}
	// The line does what it says.
	must(t, h, "sentinel/decide", map[string]any{"run": asks, "question": typed.FindStringSubmatch(got.Data.Text)[1], "verdict": "approve", "by": "ada"}, nil)
	start(`{"name": "parent", "steps": [{"type": "sentinel", "onError": "skip", "definition": {"name": "child", "steps": [{"type": "shell", "command": "exit 3"}]}}]}`)
	fails := start(`{"name": "fail", "steps": [{"type": "shell", "command": "echo the cause >&2; exit 7"}]}`)
	got = v.messages(t, h, 2, 2)[1]
	if got.Type != "sentinel:fail:failed" || got.Data.Run != string(fails) || got.Data.Severity != "error" || !strings.Contains(got.Data.Text, "exit") || !strings.Contains(got.Data.Text, "sentinel trace "+string(fails)) {
		t.Errorf("%+v", got)
	}
	// The third message is refused for good: this run of notify fails, and nothing more happens.
	start(`{"name": "fail", "steps": [{"type": "shell", "command": "exit 7"}]}`)
	v.messages(t, h, 3, 3)
	list, err := h.Runtime().Runs(runtime.RunFilter{Sentinel: "notify", Status: sentinels.StatusFailed})
	if err != nil || len(list) != 1 || list[0].Error == nil || list[0].Error.Code != abi.Denied {
		t.Errorf("failed runs of notify: %+v, %v", list, err)
	}
	time.Sleep(200 * time.Millisecond)
	v.messages(t, h, 3, 3)
}

// A webhook that is down gets the message later, with the same webhook-id each time.
func TestNotificationIsRepeated(t *testing.T) {
	h, v := notified(t, func(n int) int {
		if n < 3 {
			return http.StatusServiceUnavailable
		}
		return http.StatusOK
	})
	must(t, h, "ticket/create", `{"id": "T-1", "title": "Repair"}`, nil)
	must(t, h, "ticket/claim", `{"id": "T-1"}`, nil)
	must(t, h, "ticket/escalate", `{"id": "T-1"}`, nil)
	list := v.messages(t, h, 1, 3)
	if list[0].ID == "" || list[1].ID != list[0].ID || list[2].ID != list[0].ID || list[2].Data != list[0].Data {
		t.Errorf("%+v", list)
	}
}

// Kinds that notify.on leaves out are not sent, and a definition has precedence over it.
func TestNotifiedOfWantedKinds(t *testing.T) {
	h, v := notified(t, nil)
	create := func(id, rest string) {
		t.Helper()
		must(t, h, "sentinel/create", `{"definition": {"id": "`+id+`", "name": "`+id+`"`+rest+`, "steps": [{"type": "shell", "command": "test -e fixed"}]}}`, nil)
	}
	create("plain", "")
	create("silent", `, "notify": false`)
	create("fixes", `, "notify": ["recovered"]`)
	must(t, h, "sentinel/create", `{"definition": {"id": "busy", "name": "b", "notify": ["skipped"], "steps": [{"type": "approve", "prompt": "Go?"}],
		"trigger": {"type": "event", "event": "knock"}}}`, nil)
	run := func(id string, want sentinels.Status) (run string) {
		t.Helper()
		var out struct {
			Run    string           `json:"run"`
			Status sentinels.Status `json:"status"`
		}
		must(t, h, "sentinel/run", map[string]any{"sentinelId": id}, &out)
		if out.Status != want {
			t.Fatalf("run of %s: %+v, want %s", id, out, want)
		}
		return out.Run
	}
	run("silent", sentinels.StatusFailed)
	v.messages(t, h, 1, 0)
	run("plain", sentinels.StatusFailed)
	v.messages(t, h, 2, 1)
	failed := run("fixes", sentinels.StatusFailed)
	v.messages(t, h, 3, 1)
	if err := os.WriteFile(filepath.Join(h.Workspace(), "fixed"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	run("silent", sentinels.StatusCompleted)
	run("plain", sentinels.StatusCompleted)
	v.messages(t, h, 5, 1) // both have recovered, and no message is wanted
	completed := run("fixes", sentinels.StatusCompleted)
	got := v.messages(t, h, 6, 2)[1]
	if got.Type != "sentinel:fixes:recovered" || got.Data.Severity != "info" || got.Data.Title != "A run of fixes completed again" || got.Data.Run != completed ||
		got.Data.Text != "The run before it, "+failed+", did not.\n\nsentinel status "+completed {
		t.Errorf("%+v", got)
	}
	run("fixes", sentinels.StatusCompleted) // not the first one

	// The first of firings that are skipped in a row.
	for range 3 {
		must(t, h, "events/emit", `{"event": "knock"}`, nil)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		list, err := h.Runtime().Triggers("busy")
		if err != nil || time.Now().After(deadline) {
			t.Fatal(list, err)
		}
		if list[0].Started == 1 && list[0].Skipped == 2 {
			break
		}
	}
	got = v.messages(t, h, 8, 3)[2] // and one run for busy, which waits
	if got.Type != "sentinel:busy:skipped" || got.Data.Severity != "warning" || got.Data.Title != "A firing of busy was skipped" || !strings.HasSuffix(got.Data.Text, "\n\nsentinel triggers busy") {
		t.Errorf("%+v", got)
	}
}

// Runs of definitions that are not stored: that of a person has its own notify and recovers, also its inline children. That
// of an agent has onFailure too; it neither silences its messages nor counts as a run of the sentinel with its id.
func TestNotifiedOfUnstoredRuns(t *testing.T) {
	h, v := notified(t, nil)
	definition := func(id, rest, steps string) map[string]any {
		text := `{"id": "` + id + `", "name": "` + id + `"` + rest + `, "steps": [` + steps + `],
			"onFailure": [{"type": "shell", "command": "echo $result.status >> ` + id + `.txt"}], "finally": [{"type": "shell", "command": "echo finally >> ` + id + `.txt"}]}`
		return map[string]any{"definition": json.RawMessage(text)}
	}
	const fails = `{"type": "fail", "message": "broken"}`
	type outcome struct {
		Run    sentinels.RunID
		Status sentinels.Status
	}
	person := func(params map[string]any, want sentinels.Status) outcome {
		t.Helper()
		var out outcome
		if must(t, h, "sentinel/run", params, &out); out.Status != want {
			t.Fatalf("%+v, want %s", out, want)
		}
		return out
	}
	agent := func(params map[string]any, want sentinels.Status) outcome {
		t.Helper()
		var out outcome
		if err := asAgent(t, h, "sentinel/run", params, &out); err != nil || out.Status != want {
			t.Fatalf("%+v, %v, want %s", out, err, want)
		}
		return out
	}
	person(definition("silent", `, "notify": false`, fails), sentinels.StatusFailed)
	v.messages(t, h, 1, 0)
	failed := person(definition("plain", `, "notify": ["failed", "recovered"]`, fails), sentinels.StatusFailed)
	if m := v.messages(t, h, 2, 1)[0]; m.Type != "sentinel:plain:failed" || m.Data.Run != string(failed.Run) {
		t.Errorf("%+v", m)
	}
	again := person(definition("plain", `, "notify": ["failed", "recovered"]`, `{"type": "set", "values": {"a": 1}}`), sentinels.StatusCompleted)
	if m := v.messages(t, h, 3, 2)[1]; m.Type != "sentinel:plain:recovered" || m.Data.Run != string(again.Run) || !strings.Contains(m.Data.Text, string(failed.Run)) {
		t.Errorf("%+v", m)
	}
	must(t, h, "sentinel/start", definition("asks", `, "notify": false`, `{"type": "sentinel", "definition": {"name": "inner", "steps": [{"type": "approve", "prompt": "Go?"}]}}`), nil)
	v.messages(t, h, 4, 2) // of the inline child, whose parent has the setting

	agentFailed := agent(definition("mine", `, "notify": false`, fails), sentinels.StatusFailed)
	if m := v.messages(t, h, 5, 3)[2]; m.Type != "sentinel:mine:failed" || m.Data.Run != string(agentFailed.Run) {
		t.Errorf("%+v", m)
	}
	agent(definition("mine", "", `{"type": "set", "values": {"a": 1}}`), sentinels.StatusCompleted)
	if events, err := h.Runtime().Events("sentinel:mine:recovered", 10); err != nil || len(events) != 0 {
		t.Errorf("a run of an agent recovers no sentinel: %+v, %v", events, err)
	}
	for name, want := range map[string]string{"silent": "failed\nfinally\n", "plain": "failed\nfinally\nfinally\n", "mine": "failed\nfinally\nfinally\n"} {
		if got, err := os.ReadFile(filepath.Join(h.Workspace(), name+".txt")); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
}

// The command of a host gets a message without the variables of the host, and what it leaves behind ends.
func TestNotifyCommand(t *testing.T) {
	dir := t.TempDir()
	h := open(t, host.Options{Workspace: t.TempDir(), Environ: func() []string { return append(os.Environ(), "DATABASE_PASSWORD=x") }, Set: map[string]string{
		"notify.command": `cat > '` + dir + `/stdin'; env > '` + dir + `/env'; sleep 1000 & test "$SENTINEL_NOTIFY_TITLE" = 'it $(fails)'`,
	}})
	var out struct {
		Sent []struct {
			To string
			OK bool
		}
	}
	must(t, h, "notify/send", `{"title": "it $(fails)", "text": "a"}`, &out)
	stdin, err := os.ReadFile(filepath.Join(dir, "stdin"))
	if err != nil || string(stdin) != `{"title":"it $(fails)","text":"a","severity":"info"}` || len(out.Sent) != 1 || out.Sent[0].To != "command" || !out.Sent[0].OK {
		t.Errorf("%+v: %s, %v", out, stdin, err)
	}
	if env, err := os.ReadFile(filepath.Join(dir, "env")); err != nil || strings.Contains(string(env), "DATABASE") || !strings.Contains(string(env), "PATH=") || !strings.Contains(string(env), "SENTINEL_NOTIFY_TEXT=a") {
		t.Errorf("%s, %v", env, err)
	}
	if err := call(t, h, "notify/send", `{"title": "t", "text": ""}`, nil); abi.CodeOf(err) != abi.Plugin || !strings.Contains(err.Error(), "exit code 1") {
		t.Errorf("a command that fails: %v", err)
	}
}

// A message with a kind names the setting that leaves it out.
func TestNotifySendWithAKind(t *testing.T) {
	h := open(t, host.Options{Workspace: t.TempDir(), Set: map[string]string{"notify.on": "failed,tickets", "notify.command": "cat > /dev/null"}})
	must(t, h, "sentinel/create", `{"definition": {"id": "s", "name": "s", "notify": ["waiting"], "steps": []}}`, nil)
	for _, c := range []struct{ kind, of, note string }{
		{"failed", "", ""}, {"failed", "other", ""}, {"waiting", "", "not sent: notify.on has no waiting"}, {"recovered", "other@steps[0]", "not sent: notify.on has no recovered"},
		{"waiting", "s", ""}, {"waiting", "s@steps[0]", ""}, {"failed", "s", "not sent: notify of the definition of s has no failed"},
	} {
		var out struct {
			Sent []struct{ To string }
			Note string
		}
		must(t, h, "notify/send", map[string]any{"title": "t", "text": "", "kind": c.kind, "sentinel": c.of}, &out)
		if out.Note != c.note || (len(out.Sent) == 1) != (c.note == "") {
			t.Errorf("%+v: %+v", c, out)
		}
	}
	if err := call(t, h, "notify/send", `{"title": "t", "text": "", "kind": "started"}`, nil); abi.CodeOf(err) != abi.BadFields {
		t.Errorf("an unknown kind: %v", err)
	}
}

// Without a target nothing is sent, and the answer says so.
func TestNotifyWithoutATarget(t *testing.T) {
	h := open(t, host.Options{})
	var out struct {
		Sent []any
		Note string
	}
	must(t, h, "notify/send", `{"title": "hello", "text": ""}`, &out)
	if out.Sent == nil || len(out.Sent) != 0 || !strings.Contains(out.Note, "notify.webhook") {
		t.Errorf("%+v", out)
	}
	if _, err := host.Open(t.Context(), host.Options{Workspace: t.TempDir(), Set: map[string]string{"notify.webhook": "http://example.org/hook"}}); abi.CodeOf(err) != abi.BadFields {
		t.Errorf("a webhook without TLS: %v", err)
	}
	for key, value := range map[string]string{
		"notify.webhook": "mailto:ada", "notify.secret": "no secret", "notify.format": "fax", "notify.on": "failed,started", "notify.timeout": "1h", "notify.template": `{}`,
		"notify.email.server": "mail.example.org", "notify.email.password": "no secret", "notify.email.tls": "ssl",
	} {
		if _, err := host.Open(t.Context(), host.Options{Workspace: t.TempDir(), Set: map[string]string{key: value}}); err == nil || !strings.Contains(fmt.Sprint(err), key) {
			t.Errorf("%s %q: %v", key, value, err)
		}
	}
}

// A message of an agent names it whatever the message says, and that of a person does not.
func TestNotifySaysWhoSent(t *testing.T) {
	dir := t.TempDir()
	h := open(t, host.Options{Workspace: t.TempDir(), Set: map[string]string{"notify.command": `cat >> '` + dir + `/got'; echo >> '` + dir + `/got'`, "notify.rate": "1"}})
	send := func(by command.By) string {
		out, err := h.CallAs(t.Context(), &command.Call{Command: "notify/send", By: by, As: "ci", Params: json.RawMessage(`{"title": "deploy", "text": "t", "kind": "failed"}`)})
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	for range 3 {
		send(command.ByAgent)
	}
	if out := send(command.ByUser); !strings.Contains(out, `"ok":true`) {
		t.Errorf("a message of a person beside those of an agent: %s", out)
	}
	got, err := os.ReadFile(filepath.Join(dir, "got"))
	want := `{"title":"agent:ci: deploy","text":"t","severity":"info","by":"agent:ci"}` + "\n" + `{"title":"deploy","text":"t","severity":"info"}` + "\n"
	if err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

// TestMessagesStay: an agent neither pauses, changes nor deletes the sentinel that tells a person about its
// work, and a person does. It does so with one of its own.
func TestMessagesStay(t *testing.T) {
	h := open(t, host.Options{})
	text := `{"id": "tell", "name": "tell", "trigger": {"type": "event", "event": "sentinel:*:waiting"}, "steps": [{"command": "notify/send", "params": {"title": "x", "text": "y"}}]}`
	silent := `{"id": "tell", "name": "tell", "trigger": {"type": "event", "event": "sentinel:*:waiting"}, "steps": []}`
	agent := func(name, params string) error {
		_, err := h.CallAs(t.Context(), &command.Call{Command: name, Params: json.RawMessage(params), By: command.ByAgent, As: "ci"})
		return err
	}
	must(t, h, "sentinel/create", `{"definition": `+text+`}`, nil)
	must(t, h, "sentinel/create", `{"definition": `+strings.ReplaceAll(text, `"x"`, `"z"`)+`, "replace": true}`, nil)
	calls := [][2]string{
		{"sentinel/update", `{"sentinelId": "tell", "definition": ` + silent + `}`},
		{"sentinel/create", `{"replace": true, "definition": ` + silent + `}`},
		{"sentinel/save", `{"replace": true, "definition": ` + silent + `}`},
		{"sentinel/step/remove", `{"sentinelId": "tell", "index": 0}`},
		{"sentinel/step/add", `{"sentinelId": "tell", "index": 0, "step": {"type": "stop"}}`},
		{"sentinel/rollback", `{"sentinelId": "tell", "to": 1}`},
		{"sentinel/import", `{"overwrite": true, "definition": ` + silent + `}`},
		{"sentinel/pause", `{"sentinelId": "tell", "until": "2999-01-01T00:00:00Z"}`}, {"sentinel/delete", `{"sentinelId": "tell"}`},
	}
	for _, call := range calls {
		if err := agent(call[0], call[1]); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "only a person") {
			t.Errorf("%s by an agent: %v", call[0], err)
		}
	}
	for _, call := range calls[len(calls)-2:] {
		must(t, h, call[0], call[1], nil)
	}
	own := strings.ReplaceAll(text, "tell", "own")
	for _, call := range [][2]string{
		{"sentinel/create", `{"definition": ` + own + `}`}, {"sentinel/update", `{"sentinelId": "own", "definition": ` + strings.ReplaceAll(silent, "tell", "own") + `}`},
		{"sentinel/create", `{"replace": true, "definition": ` + own + `}`}, {"sentinel/pause", `{"sentinelId": "own"}`}, {"sentinel/delete", `{"sentinelId": "own"}`},
	} {
		if err := agent(call[0], call[1]); err != nil {
			t.Errorf("%s by the agent that made it: %v", call[0], err)
		}
	}
}

// TestNotifyThatNothingSends: validate warns of notify in a definition where no sentinel sends messages.
func TestNotifyThatNothingSends(t *testing.T) {
	h := open(t, host.Options{Workspace: t.TempDir(), Set: map[string]string{"notify.command": "true"}})
	const wants = `{"name": "x", "notify": ["failed"], "steps": [{"type": "shell", "command": "true"}]}`
	valid, got := validated(t, h, wants, nil)
	if !valid || len(got) != 1 || !strings.Contains(got[0], "no sentinel here calls notify/send | write the one that does: sentinel init --template notify") {
		t.Errorf("without a sentinel that sends: %v, %q", valid, got)
	}
	must(t, h, "sentinel/create", `{"definition": {"id": "sends", "name": "sends", "trigger": {"type": "event", "event": "sentinel:*:failed"},
		"steps": [{"command": "notify/send", "params": {"title": "t", "text": "x"}}]}}`, nil)
	if _, got := validated(t, h, wants, nil); len(got) > 0 {
		t.Errorf("with one: %q", got)
	}
	if _, got := validated(t, h, `{"name": "x", "notify": [], "steps": [{"type": "shell", "command": "true"}]}`, nil); len(got) > 0 {
		t.Errorf("without messages: %q", got)
	}
}
