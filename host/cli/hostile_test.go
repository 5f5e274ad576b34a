package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/host/cli"
	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
)

// evil is foreign text that steers a terminal: it sets the title, clears the
// screen, deletes, reverses the reading order, and forges a line.
const evil = "EVIL\x1b]0;t\x07\x1b[2J\u009b31m\x7f\u202e\u2066\u2028\r\nFORGED\tline"

// evilFile is evil as a name of files and folders, evilBytes one that is not UTF-8:
// its last byte but seven is a C1 control where a terminal reads single bytes.
const (
	evilFile  = "EVIL\x1b[2J\u009b2J\u202e\nFORGED"
	evilBytes = "EVIL\x1b[2J\x9b\nFORGED"
)

// TestHostileText runs every verb over a project in which every name and every
// text is hostile, on a terminal and not. No control byte may reach either stream
// but line feeds, tabs and the program's own colours, and no line may begin with
// what a foreign line feed tried to put there. With -short each verb runs once.
func TestHostileText(t *testing.T) {
	h := newHostileProject(t)
	seen := map[string]bool{}
	terminals := []bool{false, true}
	if testing.Short() {
		terminals = terminals[1:]
	}
	for _, v := range hostileVerbs {
		seen[v.verb] = true
		for i, args := range v.args {
			if testing.Short() && i > 0 {
				break
			}
			t.Run(fmt.Sprintf("%s/%d", v.verb, i), func(t *testing.T) {
				t.Parallel()
				t.Logf("arguments: %q", args)
				dir := h.copy(t)
				for _, terminal := range terminals {
					out := h.run(t, dir, terminal, append(strings.Fields(v.verb), args...)...)
					checkHarmless(t, out)
					if v.shows && !strings.Contains(out, "EVIL") && !slices.Contains(args, "-q") {
						t.Errorf("terminal %v: the verb shows nothing hostile, so nothing was tested:\n%s", terminal, out)
					}
				}
			})
		}
	}
	for _, verb := range cli.Verbs() {
		if !seen[verb] {
			t.Errorf("verb %q is not tested: add it to hostileVerbs", verb)
		}
		delete(seen, verb)
	}
	if len(seen) > 0 {
		t.Errorf("there are no such verbs: %v", slices.Collect(maps.Keys(seen)))
	}
}

// A hostileVerb is a verb with the arguments it is run with. shows says that the
// output must have some of the hostile text, else the test would prove nothing.
type hostileVerb struct {
	verb  string
	shows bool
	args  [][]string
}

var hostileVerbs = []hostileVerb{
	{"backup", true, [][]string{{"copy" + evilFile + ".gz"}}},
	{"bench", false, [][]string{{}}},
	{"restore", true, [][]string{{evil}}},
	{"restore", false, [][]string{{"conf" + evilFile, "other"}}},
	{"compact", false, [][]string{{}}},
	{"completion", false, [][]string{{"bash"}, {"zsh"}, {"fish"}, {"powershell"}}},
	{"completion", true, [][]string{{evil}}},
	{"audit", true, [][]string{{}, {"-o", "json"}, {"--event", evil}, {"--actor", evil}, {"--since", evil}}},
	{"config", false, [][]string{{}}},
	{"config check", true, [][]string{{"conf" + evilFile}}},
	{"config path", true, [][]string{{}}},
	{"config schema", false, [][]string{{}}},
	{"config show", false, [][]string{{}, {"--origin"}, {"-o", "json"}}},
	{"config show", true, [][]string{{evil}}},
	{"create", true, [][]string{{"other" + evilFile + ".json"}, {"--name", evil, "--steps", `[{"type":"shell","command":"true"}]`, "-o", "json"}}},
	{"create", true, [][]string{{"bad" + evilFile + ".json"}}},
	{"decide", true, [][]string{{"waits", evil}, {"waits", "reject", "--comment", evil, "-o", "json"}}},
	{"accept", true, [][]string{{"evil", "1", "--note", evil}, {evil, "1"}}},
	{"delete", true, [][]string{{"evil", "--note", evil, "-o", "json"}, {evil}}},
	{"delete", false, [][]string{{"evil", "--note", evil}}},
	{"deploy", true, [][]string{{"evil", "--to", "to" + evilFile}, {"evil", "--to", "to" + evilFile, "-o", "json"}}},
	{"diff", true, [][]string{{"evil"}, {"evil", "-o", "json"}}},
	{"doctor", true, [][]string{{}, {"-o", "json"}, {"--only", evil}}},
	{"emit", true, [][]string{{"a:" + evil}}},
	{"emit", false, [][]string{{"a:b", "--data", hostileJSON(evil), "-o", "json"}}},
	{"events", true, [][]string{{}, {"-o", "json"}, {"-o", "jsonl"}}},
	{"events tail", true, [][]string{{}, {"-o", "jsonl"}}},
	{"exec", true, [][]string{{evil}, {"code/read", "--path", evilFile}, {"code/tree"}, {"-o", "json", "code/search", "--pattern", "EVIL"}, {"code/shell/execute", "--command", "cat EVIL*"}, {"code/read", "--" + evil}}},
	{"exec", false, [][]string{{"--list"}, {"code/read", "--help"}}},
	{"export", true, [][]string{{"evil"}, {"evil", "--history"}, {"--all"}, {evil}}},
	{"fork", true, [][]string{{"evil", "--iteration", "1"}, {"evil", "--iteration", "1", "-o", "jsonl"}}},
	{"do", true, [][]string{{evil, "--yolo", "--no-check"}, {evil, "--no-check", "-o", "json"}, {"--undo", evil}}},
	{"help", false, [][]string{{evil}}},
	{"trust", false, [][]string{{}, {"-o", "json"}, {"--yes"}, {"--revoke"}}},
	{"trust", true, [][]string{{evil}}},
	{"import", true, [][]string{{"other" + evilFile + ".json", "-o", "json"}, {evil}}},
	{"import", false, [][]string{{"other" + evilFile + ".json"}}},
	{"ticket import", true, [][]string{{evil}, {"other" + evilFile + ".json"}}},
	{"inbox", true, [][]string{{}, {"-o", "json"}, {"--kind", "approval"}, {"--kind", evil}}},
	{"init", true, [][]string{{"--name", "x" + evil, "new" + evilFile}}},
	{"list", true, [][]string{{}, {"-o", "json"}, {"-o", "jsonl"}, {"--status", evil}}},
	{"load", true, [][]string{{}, {"-o", "json"}, {"other" + evilFile + ".json"}}},
	// What commands have printed goes into a pipe as it is: see TestPrinted of termtext for terminals.
	{"logs", true, [][]string{{"evil", "--events"}, {"evil", "-v", "--events"}, {"evil", "-o", "jsonl"}, {"fails", "--events"}, {"evil", "--step", "none"}, {evil}}},
	{"pause", true, [][]string{{"waits", "-o", "json"}, {evil}}},
	{"plugin", false, [][]string{{}}},
	{"plugin allow", true, [][]string{{"asking", "--dry-run"}, {"asking", "--yes"}, {"asking", "--dry-run", "-o", "json"}, {evil}, {"asking", "--folder", evil, "--dry-run"}}},
	{"plugin bench", true, [][]string{{".sentinel/plugins/asking.wasm", "--n", "2", "--type", evil}}},
	{"plugin build", true, [][]string{{"project" + evilFile}}},
	{"plugin call", true, [][]string{{".sentinel/plugins/asking.wasm", "--type", evil}, {evil}}},
	{"plugin deny", true, [][]string{{evil}, {"asking", "-o", "json"}}},
	{"plugin inspect", true, [][]string{{".sentinel/plugins/asking.wasm"}, {".sentinel/plugins/asking.wasm", "-o", "json"}, {".sentinel/plugins/bad" + evilBytes + ".wasm"}}},
	{"plugin install", true, [][]string{{".sentinel/plugins/asking.wasm", "--dir", "to" + evilFile}, {evil}}},
	{"plugin keygen", true, [][]string{{"k" + evilFile, "--no-password"}}},
	{"plugin list", true, [][]string{{}, {"-o", "json"}}},
	{"plugin lock", true, [][]string{{}, {"--check"}, {"-o", "json"}}},
	{"plugin new", true, [][]string{{evil}, {"shout", "--dir", "new" + evilFile}}},
	{"plugin pack", true, [][]string{{".sentinel/plugins/asking.wasm", "-f", "pack" + evilFile + ".tar"}}},
	{"plugin push", true, [][]string{{".sentinel/plugins/asking.wasm", evil}}},
	{"plugin sign", true, [][]string{{".sentinel/plugins/asking.wasm", "--key", "none" + evilFile}}},
	{"plugin test", true, [][]string{{".sentinel/plugins/asking.wasm", "--cases", "cases.json"}, {".sentinel/plugins/asking.wasm", "--cases", "cases.json", "-o", "json"}}},
	{"plugin trust", true, [][]string{{evil}}},
	{"plugin uninstall", true, [][]string{{evil}}},
	{"plugin unlock", true, [][]string{{evil}}},
	{"plugin verify", true, [][]string{{".sentinel/plugins/bad" + evilBytes + ".wasm", "--key", "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"}}},
	{"recover", true, [][]string{{"--from", evil}}},
	{"recover", false, [][]string{{"--dry-run"}}},
	{"recover list", true, [][]string{{"--state", "state" + evilFile}}},
	{"resume", true, [][]string{{evil}}},
	{"retry", true, [][]string{{"evil"}, {evil}}},
	{"revisions", true, [][]string{{"evil"}, {"evil", "-o", "json"}, {evil}}},
	{"rollback", true, [][]string{{"evil", "1", "--note", evil}, {evil, "1"}}},
	{"run", true, [][]string{{"evil", "-v"}, {"evil", "-o", "jsonl"}, {"evil", "--dry-run"}, {"fails"}, {"waits"}, {"other" + evilFile + ".json"}, {"bad" + evilFile + ".json"}, {evil}}},
	{"schema", false, [][]string{{}}},
	{"secret", false, [][]string{{}}},
	{"secret allow", false, [][]string{{evil, "x"}, {"NAME", evil}}},
	{"secret list", false, [][]string{{}, {"-o", "json"}}},
	{"secret remove", false, [][]string{{evil}, {"NAME"}}},
	{"secret set", false, [][]string{{evil}, {"NAME"}}},
	{"serve", true, [][]string{{}, {"json"}}},
	{"show", true, [][]string{{"evil"}, {"evil", "-o", "json"}, {evil}}},
	{"start", true, [][]string{{"evil", "--input", evil}, {evil}}},
	{"status", true, [][]string{{"evil"}, {}, {"waits"}, {"fails", "-o", "json"}, {evil}}},
	{"step", false, [][]string{{}}},
	{"step add", true, [][]string{{"evil", "--step", hostileJSON(map[string]string{"type": "shell", "name": evil, "command": "true"})}}},
	{"step list", true, [][]string{{"evil"}, {"evil", "-o", "json"}}},
	{"step remove", true, [][]string{{"evil", "--index", "0"}, {"evil", "--address", evil}}},
	{"step update", true, [][]string{{"evil", "--index", "0", "--params", hostileJSON(map[string]string{"name": evil + "2"})}}},
	{"stop", true, [][]string{{"waits", "-o", "json"}, {evil}}},
	{"ticket", false, [][]string{{}}},
	{"ticket activity", true, [][]string{{"evil"}, {"evil", "-o", "json"}, {evil}}},
	{"ticket attempts", true, [][]string{{"evil"}, {"evil", "-o", "json"}, {evil}}},
	{"ticket comment", true, [][]string{{"evil", evil, "-o", "json"}, {evil, "x"}}},
	{"ticket context", true, [][]string{{"evil"}, {"evil", "-o", "json"}, {evil}}},
	{"ticket create", true, [][]string{{evil}, {evil, "--label", evil, "-o", "json"}, {"x", "--id", evil}}},
	{"ticket decide", true, [][]string{{"evil", "release", "--comment", evil}, {"evil", evil}}},
	{"ticket delete", true, [][]string{{evil}}},
	{"ticket list", true, [][]string{{}, {"-o", "json"}, {"--state", evil}}},
	{"ticket rules", true, [][]string{{}, {"-o", "json"}, {"--state", evil}}},
	{"ticket rules accept", true, [][]string{{evil}}},
	{"ticket rules add", true, [][]string{{evil}, {"x", "--project", evil}, {"x", "--file", evil}}},
	{"ticket rules remove", true, [][]string{{evil}}},
	{"ticket rules retire", true, [][]string{{evil}}},
	{"ticket show", true, [][]string{{"evil"}, {"evil", "-o", "json"}, {evil}}},
	{"ticket stats", false, [][]string{{}, {"-o", "json"}}},
	{"token", true, [][]string{{evil}}},
	{"token list", false, [][]string{{}, {"-o", "json"}}},
	{"token new", true, [][]string{{"--as", evil, "--name", "x"}, {"--as", "agent", "--name", evil}, {"--as", "agent", "--name", "y", "--expires", evil}}},
	{"token revoke", true, [][]string{{evil}}},
	{"trace", true, [][]string{{"evil"}, {"evil", "-v"}, {"evil", "-o", "json"}, {"fails"}, {evil}}},
	{"triggers", true, [][]string{{}, {"-o", "json"}}},
	{"man", false, [][]string{{evil}, {"run"}}},
	{"unit", false, [][]string{{"--as", evil}}},
	{"update", true, [][]string{{"other" + evilFile + ".json", "--name", "evil"}, {"bad" + evilFile + ".json"}}},
	{"validate", true, [][]string{{"other" + evilFile + ".json"}, {"bad" + evilFile + ".json"}, {"bad" + evilFile + ".json", "-o", "json"}}},
	{"verify", true, [][]string{{"evil"}, {evil}, {evil, "-o", "json"}}},
	{"version", false, [][]string{{}, {"-v"}}},
}

// colours are what the program itself writes to a terminal. None is in evil.
var colours = regexp.MustCompile(`\x1b\[[0-9;]*m|\r\x1b\[2K`)

func checkHarmless(t *testing.T, out string) {
	t.Helper()
	out = colours.ReplaceAllString(out, "")
	if !strings.HasPrefix(out, "\n") {
		out = "\n" + out
	}
	if !utf8.ValidString(out) {
		t.Errorf("a byte that is not UTF-8 gets through: %q", out)
	}
	steers := func(r rune) bool {
		return r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028'
	}
	if i := strings.IndexFunc(out, steers); i >= 0 {
		t.Errorf("a control character gets through: %q", out[max(0, i-200):min(len(out), i+100)])
	}
	if i := strings.Index(out, "\nFORGED"); i >= 0 {
		t.Errorf("a line is forged: %q", out[max(0, i-200):min(len(out), i+100)])
	}
}

func hostileJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// A hostileProject is the folder that every verb gets a copy of.
type hostileProject struct {
	dir string
	env map[string]string
}

// newHostileProject makes a project with stored sentinels, runs of each kind,
// events, plugins and logs.
func newHostileProject(t *testing.T) *hostileProject {
	t.Helper()
	model := httptest.NewServer(http.HandlerFunc(answerEvil))
	t.Cleanup(model.Close)
	h := &hostileProject{dir: filepath.Join(t.TempDir(), evilFile)}
	h.env = map[string]string{"USER": evil, "OPENAI_BASE_URL": model.URL + "/v1", "OPENAI_API_KEY": "k", "HOME": h.dir, "XDG_CACHE_HOME": cacheHome, "XDG_CONFIG_HOME": filepath.Join(h.dir, "xdg"+evilFile)}
	h.write(t, ".sentinel/sentinels/evil.json", hostileDefinition("evil", evil, evilSteps))
	h.write(t, ".sentinel/sentinels/fails.json", hostileDefinition("fails", evil, []any{map[string]any{
		"type": "shell", "name": evil, "command": "printf '%s' \"$S\"; cat EVIL*FORGED >&2; exit 3", "env": map[string]string{"S": "x"}}}))
	h.write(t, ".sentinel/sentinels/waits.json", hostileDefinition("waits", evil, []any{map[string]any{"type": "approve", "name": evil, "prompt": evil}}))
	h.write(t, ".sentinel/sentinels/"+evilFile+".json", `{"name": `)
	h.write(t, "other"+evilFile+".json", hostileDefinition("other", evil, evilSteps))
	h.write(t, "bad"+evilFile+".json", hostileDefinition("bad", evil, []any{map[string]any{"type": "x" + evil, "name": evil}}))
	h.write(t, evilFile, evil+"\n")
	h.write(t, evilBytes, evil+"\n")
	h.write(t, ".sentinel/sentinels/"+evilBytes+".json", "{")
	h.write(t, "conf"+evilFile, hostileJSON(map[string]any{evil: evil, "logs": map[string]string{"level": evil}}))
	h.write(t, "cases.json", hostileJSON([]any{map[string]any{"name": evil, "step": map[string]any{"type": "ask", "fields": map[string]any{}}, "output": evil}}))
	h.write(t, "project"+evilFile+"/plugin.json", hostileJSON(map[string]string{"name": evil, "language": evil}))
	h.plugin(t, ".sentinel/plugins/asking.wasm")
	h.write(t, ".sentinel/plugins/bad"+evilBytes+".wasm", evil)
	if err := os.MkdirAll(filepath.Join(h.dir, ".sentinel/state"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"load"}, {"run", "evil"}, {"run", "fails"}, {"run", "waits"}, {"emit", "a:b", "--data", hostileJSON(map[string]string{evil: evil})},
		{"step", "update", "evil", "--index", "1", "--params", hostileJSON(map[string]string{"name": evil + "changed"})},
		{"ticket", "create", evil, "--id", "evil", "--description", evil, "--label", evil}, {"ticket", "create", "x", "--id", "other"}, {"ticket", "comment", "evil", evil},
		{"exec", "ticket/claim", "--id", "evil", "--agent_id", evil}, {"exec", "ticket/fail", "--id", "evil", "--token", "1", "--error", evil},
		{"exec", "ticket/claim", "--id", "other"}, {"exec", "ticket/fail", "--id", "other", "--token", "1", "--error", evil},
	} {
		out := h.run(t, h.dir, false, args...)
		t.Logf("%q:\n%s", args, out)
	}
	return h
}

// evilSteps write hostile text in each way that a step has.
var evilSteps = []any{
	map[string]any{"id": "list", "type": "shell", "name": evil, "command": "ls; cat EVIL*FORGED", "outputTo": "shell"},
	map[string]any{"type": "llm", "name": evil, "prompt": evil, "outputTo": "model"},
	map[string]any{"type": "emit", "name": evil, "event": "a:b", "data": map[string]any{evil: evil}},
	map[string]any{"type": "command", "name": evil, "command": "code/read", "params": map[string]any{"path": evilFile}, "outputTo": "file"},
	map[string]any{"type": "condition", "name": evil, "check": "true", "then": []any{map[string]any{"type": "command", "command": "code/tree", "name": evil}}},
}

func hostileDefinition(id, name string, steps []any) string {
	return hostileJSON(map[string]any{
		"id": id, "name": name, "description": evil, "tags": []string{evil}, "steps": steps,
		"trigger": map[string]any{"type": "event", "event": "x:y", "filter": "true || '" + strings.NewReplacer("\r", "", "\n", "", "\u2028", "").Replace(evil) + "'"},
		"inputs":  map[string]any{"in": map[string]any{"type": "string", "default": evil, "description": evil}},
		"loop":    map[string]any{"type": "count", "max": 1},
	})
}

// answerEvil is a language model with hostile replies.
func answerEvil(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintln(w, `{"object":"list","data":[{"id":"evil","object":"model"}]}`)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	const chunk = `{"id":"1","object":"chat.completion.chunk","model":"evil","choices":[{"index":0,"delta":{"role":"assistant","content":%s},"finish_reason":%s}]}`
	fmt.Fprintf(w, "data: "+chunk+"\n\n", hostileJSON(evil), "null")
	fmt.Fprintf(w, "data: "+chunk+"\n\n", hostileJSON(evil), `"stop"`)
	fmt.Fprint(w, "data: [DONE]\n")
}

// plugin writes one whose manifest is hostile and that waits for a grant.
func (h *hostileProject) plugin(t *testing.T, name string) {
	t.Helper()
	code, err := os.ReadFile(plainGuest)
	if err != nil {
		t.Fatal(err)
	}
	manifest := hostileJSON(map[string]any{
		"abi": 1, "name": "asking", "version": "1.0" + evil,
		"steps":       []any{map[string]any{"type": "ask", "summary": evil, "fields": map[string]any{"type": "object", "description": evil}}},
		"permissions": []any{map[string]any{"use": "emit", "names": []string{"a:*"}, "reason": evil}},
	})
	place := fmt.Appendf(nil, "%-2048s", "MANIFEST")
	code = bytes.Replace(code, place, fmt.Appendf(nil, "%-2048s", termtext.JSON([]byte(manifest))), 1)
	h.write(t, name, string(code))
}

func (h *hostileProject) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(h.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// copy returns a folder with the same name and content.
func (h *hostileProject) copy(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), evilFile)
	err := filepath.WalkDir(h.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(h.dir, path)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, rel)
		switch {
		case d.IsDir():
			return os.MkdirAll(to, 0o700)
		case !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, text, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// run runs one verb and returns what it writes to both streams.
func (h *hostileProject) run(t *testing.T, dir string, terminal bool, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var out lockedBuffer
	env := map[string]string{}
	if args[0] == "serve" {
		out.ready, out.then = "serving", cancel
		if args[len(args)-1] == "json" { // a format and no argument of the verb
			args, env["SENTINEL_LOGS_FORMAT"] = args[:1], "json"
		}
		env["SENTINEL_SERVE_LISTEN"] = "127.0.0.1:0"
	}
	for k, v := range h.env {
		env[k] = strings.Replace(v, h.dir, dir, 1)
	}
	cli.Run(ctx, app.Env{
		Args: args, Dir: dir, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, StdoutTerminal: terminal, StderrTerminal: terminal,
		Getenv: trusting(env),
	})
	return out.text()
}

// lockedBuffer is written by several goroutines. It calls then when ready was
// written.
type lockedBuffer struct {
	mu    sync.Mutex
	b     bytes.Buffer
	ready string
	then  func()
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.b.Write(p)
	if l.ready != "" && strings.Contains(l.b.String(), l.ready) {
		time.AfterFunc(time.Second, l.then)
		l.ready = ""
	}
	return n, err
}

func (l *lockedBuffer) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
