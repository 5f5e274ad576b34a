package serve_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/command/shell/supervise"
	"github.com/sentinel-runtime/sentinel/host/control"
	"github.com/sentinel-runtime/sentinel/host/serve"
)

func init() { serveAll = serveEverything }

// serveEverything is a process with a server that has every listener configured, and with
// work under way: a shell step, a file trigger, and events sent to a collector of traces.
// It prints where it listens.
func serveEverything(project string) {
	fail := func(err error) {
		if err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
	}
	s, err := serve.Open(context.Background(), serve.Options{
		Host: host.Options{Workspace: project, Config: filepath.Join(project, "none.json"), Subreaper: true, Set: map[string]string{
			"serve.listen": "127.0.0.1:0", "verify.listen": "127.0.0.1:0", "tracing.endpoint": "http://127.0.0.1:1",
		}},
		Ready: func(start serve.Start) {
			fail(json.NewEncoder(os.Stdout).Encode(start))
			_, _ = io.Copy(io.Discard, os.Stdin) // until the test ends
			os.Exit(0)
		},
	})
	fail(err)
	fail(s.Run(context.Background()))
}

// everything starts that process, and waits until its work is under way.
func everything(t *testing.T) (pid int, state string, start serve.Start) {
	t.Helper()
	project := t.TempDir()
	write(t, filepath.Join(project, ".sentinel", "sentinels", "work.json"),
		`{"name": "work", "trigger": {"type": "immediate"}, "steps": [{"type": "shell", "command": "echo > begun; exec sleep 600"}]}`)
	write(t, filepath.Join(project, ".sentinel", "sentinels", "watch.json"),
		`{"name": "watch", "trigger": {"type": "file", "paths": ["*.txt"]}, "steps": [{"type": "set", "values": {"x": 1}}]}`)
	cmd := exec.Command("/proc/self/exe", serverProcess, project)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &start) != nil {
		t.Fatalf("%s, %v", line, err)
	}
	(&life{T: t}).until("the step to begin", func() bool {
		_, err := os.Stat(filepath.Join(project, "begun"))
		return err == nil
	})
	return cmd.Process.Pid, filepath.Join(project, ".sentinel", "state"), start
}

// listening returns where a process and those below it accept connections or packets, by
// their open files and the tables of the kernel.
func listening(t *testing.T, pid int) (list []string) {
	t.Helper()
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	sockets := map[string]bool{}
	pids := []int{pid}
	for at := 0; at < len(pids); at++ {
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pids[at]))
		if err != nil || len(files) == 0 {
			t.Fatalf("the files of process %d: %v", pids[at], err)
		}
		for _, f := range files {
			to, _ := os.Readlink(f) // it may be closed meanwhile
			if inode, ok := strings.CutPrefix(to, "socket:["); ok {
				sockets[strings.TrimSuffix(inode, "]")] = true
			}
		}
		all, err := os.ReadDir("/proc")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			if n, err := strconv.Atoi(e.Name()); err == nil {
				if p, ok := supervise.ProcessOf(n); ok && p.Parent == pids[at] {
					pids = append(pids, n)
				}
			}
		}
	}
	if len(pids) < 3 {
		t.Fatalf("processes %v: no step is under way", pids)
	}
	if len(sockets) < 3 {
		t.Fatalf("sockets %v", sockets)
	}
	for _, network := range []string{"tcp", "tcp6", "udp", "udp6", "udplite", "udplite6", "raw", "raw6"} {
		for _, line := range strings.Split(read(fmt.Sprintf("/proc/%d/net/%s", pid, network)), "\n")[1:] {
			f := strings.Fields(line)
			if len(f) < 10 || !sockets[f[9]] {
				continue
			}
			const listens = "0A"
			if strings.HasPrefix(network, "tcp") && f[3] == listens || !strings.HasPrefix(network, "tcp") && strings.Trim(f[2], "0:") == "" {
				_, port, _ := strings.Cut(f[1], ":")
				n, err := strconv.ParseUint(port, 16, 16)
				if err != nil {
					t.Fatal(line)
				}
				list = append(list, fmt.Sprintf("%s %d", network, n))
			}
		}
	}
	for _, line := range strings.Split(read(fmt.Sprintf("/proc/%d/net/unix", pid)), "\n")[1:] {
		const accepts = "00010000"
		if f := strings.Fields(line); len(f) > 6 && sockets[f[6]] && f[3] == accepts {
			list = append(list, "unix "+strings.Join(f[7:], " "))
		}
	}
	slices.Sort(list)
	return list
}

// TestListenersOfAProcess: a server with all of its parts accepts connections where
// serve.Listeners says, and nowhere else.
func TestListenersOfAProcess(t *testing.T) {
	pid, state, start := everything(t)
	port := func(address string) uint16 {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		return netip.MustParseAddrPort(u.Host).Port()
	}
	where := map[string]string{
		"control socket": "unix " + filepath.Join(state, control.SocketName),
		"API":            fmt.Sprintf("tcp %d", port(start.URL)),
		"verifier":       fmt.Sprintf("tcp %d", port(start.Verifier)),
	}
	var want []string
	for _, l := range serve.Listeners() {
		if where[l.Name] == "" {
			t.Errorf("this test does not know how to find listener %q", l.Name)
		}
		want = append(want, where[l.Name])
	}
	slices.Sort(want)
	if got := listening(t, pid); !slices.Equal(got, want) {
		t.Errorf("it listens on %q, the list has %q", got, want)
	}
}

// TestListenersWantProof: a request without a proof is refused by every listener, whatever
// it is for, but where the list says that none is needed.
func TestListenersWantProof(t *testing.T) {
	_, state, start := everything(t)
	token, err := os.ReadFile(filepath.Join(state, "token"))
	if err != nil {
		t.Fatal(err)
	}
	clients := map[string]*http.Client{"control socket": {Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(state, control.SocketName))
	}}}, "API": http.DefaultClient, "verifier": http.DefaultClient}
	bases := map[string]string{"control socket": "http://sentinel", "API": start.URL, "verifier": start.Verifier}
	for _, l := range serve.Listeners() {
		send := func(method, path, bearer string) int {
			t.Helper()
			req, err := http.NewRequestWithContext(t.Context(), method, bases[l.Name]+path, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			if path == "/ws" {
				req.Header.Set("Connection", "Upgrade")
				req.Header.Set("Upgrade", "websocket")
				req.Header.Set("Sec-WebSocket-Version", "13")
				req.Header.Set("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
			}
			if bearer != "" {
				req.Header.Set("Authorization", "Bearer "+bearer)
			}
			res, err := clients[l.Name].Do(req)
			if err != nil {
				t.Fatalf("%s: %v", l.Name, err)
			}
			res.Body.Close()
			return res.StatusCode
		}
		refused := 0
		for _, request := range []string{
			"GET /v1/owner", "GET /", "GET /v1/runs", "GET /v1/commands", "POST /v1/commands/sentinel/start", "POST /v1/commands/ticket/decide", "GET /ws", "GET /metrics", "GET /openapi.json",
			"POST /verify", "GET /status/T-1", "GET /tickets", "POST /v1/hooks/work", "POST /v1/events", "OPTIONS /v1/runs", "GET /debug/pprof/", "GET /nothing", "POST /mcp",
		} {
			method, path, _ := strings.Cut(request, " ")
			for _, bearer := range []string{"", "x", strings.TrimSpace(string(token)) + "x"} {
				switch got := send(method, path, bearer); {
				case path == "/ws" && got == http.StatusSwitchingProtocols && l.Name == "API":
					// A page sees the code of a closed WebSocket only, so it is opened and closed at once.
				case got == http.StatusUnauthorized:
					refused++
				case got == http.StatusNotFound && (l.Name == "verifier" || path == "/v1/hooks/work"):
				default:
					t.Errorf("%s: %s with token %.1q: %d", l.Name, request, bearer, got)
				}
			}
		}
		if refused < 6 {
			t.Errorf("%s: %d requests got 401", l.Name, refused)
		}
		for _, open := range []string{"/health", "/ready"} {
			if got := send("GET", open, ""); got != http.StatusOK || !strings.Contains(l.Open, open) {
				t.Errorf("%s: %s: %d", l.Name, open, got)
			}
		}
		if path := map[bool]string{true: "/status/T-1", false: "/v1/owner"}[l.Name == "verifier"]; send("GET", path, strings.TrimSpace(string(token))) == http.StatusUnauthorized {
			t.Errorf("%s: the token is refused", l.Name)
		}
	}
}
