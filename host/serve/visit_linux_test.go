package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/control"
	"github.com/sentinel-runtime/sentinel/host/principal"
)

// What a process below a step or a check is answered, by the network, the token and the
// request. A start by an agent is allowed, a decision is not.
type answers map[string]string

func init() { visit = sendVisits }

// sendVisits is a process that sends requests to the server of a state folder and prints how
// they are answered. Its arguments are the folder, the URL, the token and, for a process
// that has left its parents, session and environment, the pid of the one to wait for.
func sendVisits(args []string) {
	state, url, token := args[0], args[1], args[2]
	const result = "visit.json" // a process that has left cannot print: it must not keep the pipe of the step open
	switch {
	case len(args) > 3 && args[3] == "leave":
		// This process waits, because the end of a command ends its processes.
		first := exec.Command("/proc/self/exe", visitor, state, url, token, "middle")
		first.Env, first.SysProcAttr = []string{}, &syscall.SysProcAttr{Setsid: true}
		if err := first.Run(); err != nil {
			fmt.Println(err)
		}
		for {
			if text, err := os.ReadFile(result); err == nil {
				fmt.Println(string(text))
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	case len(args) > 3 && args[3] == "middle":
		second := exec.Command("/proc/self/exe", visitor, state, url, token, strconv.Itoa(os.Getpid()))
		second.Env, second.SysProcAttr = []string{}, &syscall.SysProcAttr{Setsid: true}
		if err := second.Start(); err != nil {
			fmt.Println(err)
		}
		return
	case len(args) > 3:
		for strconv.Itoa(os.Getppid()) == args[3] {
			time.Sleep(time.Millisecond)
		}
	}
	got := answers{}
	networks := map[string]*http.Transport{"socket": {}, "http": {}}
	networks["socket"].DialContext = func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", filepath.Join(state, control.SocketName))
	}
	for network, transport := range networks {
		for _, by := range [][2]string{{"", ""}, {token, ""}, {token, "agent:chosen"}} {
			bearer, as := by[0], by[1]
			for path, body := range map[string]string{"sentinel/start": `{"definition": {"name": "door", "steps": [{"type": "set", "values": {"x": 1}}]}}`, "ticket/decide": `{"id": "T-1", "action": "hold"}`, "owner": ""} {
				method, at := http.MethodPost, "/v1/commands/"+path
				if body == "" {
					method, at = http.MethodGet, "/v1/"+path
				}
				req, err := http.NewRequest(method, url+at, strings.NewReader(body))
				if err == nil && bearer != "" {
					req.Header.Set("Authorization", "Bearer "+bearer)
				}
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set(principal.Header, as)
				name := fmt.Sprintf("%s %s token=%v %s", network, as, bearer != "", path)
				res, err := (&http.Client{Transport: transport}).Do(req)
				if err != nil {
					got[name] = "error " + err.Error()
					continue
				}
				text, _ := io.ReadAll(res.Body)
				res.Body.Close()
				got[name] = fmt.Sprint(res.StatusCode, " ", string(text))
			}
		}
	}
	text, _ := json.Marshal(got)
	if len(args) == 3 {
		fmt.Println(string(text))
		return
	}
	if err := os.WriteFile(result+".new", text, 0o600); err == nil {
		_ = os.Rename(result+".new", result)
	}
}

// TestProcessesBelowStepsAreAgents: a process below a step or a check is refused without a
// token, and with the token of a person it is an agent.
func TestProcessesBelowStepsAreAgents(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not on this machine")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(self)+string(filepath.ListSeparator)+os.Getenv("PATH")) // a check may read these folders
	project := t.TempDir()
	repository(t, project, map[string]string{"a.txt": "x"})
	l := begin(t, project)
	if code := l.ask("POST", "/tickets", map[string]any{"id": "T-1", "title": "x"}, nil); code != http.StatusCreated {
		t.Fatal(code)
	}
	if code := l.ask("POST", "/v1/commands/ticket/decide", map[string]any{"id": "T-1", "action": "hold"}, nil); code != http.StatusOK {
		t.Errorf("this process, which is not below itself: %d", code)
	}
	args := []string{visitor, l.server.Host().State(), l.http.URL, l.token}
	ways := map[string]func(args []string) string{
		"step": func(args []string) string {
			var out struct {
				Error     json.RawMessage
				Variables struct{ Out struct{ Stdout string } }
			}
			l.ask("POST", "/v1/commands/sentinel/run", map[string]any{"definition": map[string]any{
				"name": "w", "steps": []any{map[string]any{"type": "shell", "argv": append([]string{self}, args...), "outputTo": "out"}},
			}}, &out)
			if out.Error != nil {
				t.Errorf("step: %s", out.Error)
			}
			return out.Variables.Out.Stdout
		},
		"check": func(args []string) string {
			id := fmt.Sprintf("C-%d", len(args))
			if code := l.ask("POST", "/tickets", map[string]any{"id": id, "title": "x", "branch_name": "work", "repo_url": project, "acceptance_criteria": map[string]any{"checks": []any{
				map[string]any{"id": "ac", "type": "test_pass", "verify": map[string]any{"command": "'" + self + "' '" + strings.Join(args, "' '") + "'"}},
			}}}, nil); code != http.StatusCreated {
				t.Fatal(code)
			}
			var out struct {
				Checks []struct{ Message, Output string }
			}
			if code := l.ask("POST", "/verify", map[string]any{"ticket_id": id}, &out); len(out.Checks) != 1 {
				t.Fatal(code, out)
			}
			return out.Checks[0].Output
		},
	}
	for way, execute := range ways {
		for _, more := range [][]string{nil, {"leave"}} {
			out := execute(append(args[:len(args):len(args)], more...))
			got := answers{}
			if at := strings.Index(out, "{"); at < 0 || json.Unmarshal([]byte(out[at:strings.LastIndex(out, "}")+1]), &got) != nil || len(got) != 18 {
				t.Errorf("%s %v: %q", way, more, out)
				continue
			}
			for name, answer := range got {
				want := "401 "
				switch {
				case strings.Contains(name, "token=true ticket/decide"):
					want = "403 "
				case strings.Contains(name, "token=true"):
					want = "20"
				}
				// A check may be kept from the socket and the port altogether.
				if !strings.HasPrefix(answer, want) && (way != "check" || !strings.HasPrefix(answer, "error ")) {
					t.Errorf("%s %v, %s: %s", way, more, name, answer)
				}
				if want == "403 " && !strings.HasPrefix(answer, "error ") && !strings.Contains(answer, "below a step") {
					t.Errorf("%s %v, %s does not say why: %s", way, more, name, answer)
				}
			}
		}
	}
	// What was refused is in the audit log, with the process.
	var log struct {
		Entries []struct {
			Actor, Event, Outcome, Program string
			PID                            int
		}
	}
	l.ask("POST", "/v1/commands/audit/list", map[string]any{"limit": 1000}, &log)
	found := map[string]bool{}
	for _, e := range log.Entries {
		if strings.Contains(e.Actor, "chosen") {
			t.Errorf("a process below a step chose its name: %+v", e)
		}
		if e.Event == "ticket/decide" && e.Program == filepath.Base(self) && e.PID > 0 {
			found[e.Actor+" "+e.Outcome] = true
		}
	}
	if !found["agent:below-step denied"] || !found["unknown denied"] {
		t.Errorf("audit log: %v in %+v", found, log.Entries)
	}
}
