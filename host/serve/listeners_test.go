package serve_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/serve"
)

// TestListenersTable: SERVE.md has the list.
func TestListenersTable(t *testing.T) {
	table := "| listener | address | who can connect | proof | answers without it |\n|---|---|---|---|---|\n"
	for _, l := range serve.Listeners() {
		table += fmt.Sprintf("| %s (%s) | %s | %s | %s | %s |\n", l.Name, l.Network, l.Address, l.Clients, l.Proof, l.Open)
	}
	page, err := os.ReadFile(filepath.Join("..", "SERVE.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), table) {
		t.Errorf("SERVE.md does not have this table:\n%s", table)
	}
}

// listens finds the functions by which a program accepts connections or packets.
var listens = regexp.MustCompile(`\bnet\.Listen|\bListenConfig\b|\bListen(TCP|UDP|IP|Unix|Unixgram|Packet|AndServe|AndServeTLS|MulticastUDP)\(|httptest\.New(Unstarted|TLS)?Server\(|\bSocketpair\(|\b(unix|syscall)\.(Listen|Accept4?)\(`)

// listeningFiles are the files that may have one, with the reason.
var listeningFiles = map[string]string{
	"host/api/listen.go":                         "the ports of Listeners",
	"host/control/socket.go":                     "the control socket of Listeners",
	"host/command/shell/supervisor_linux.go":     "a pair of sockets without a name, for a supervisor",
	"host/confine/offline_linux.go":              "in the launcher of an offline command: a socket in a folder that commands do not have",
	"host/verify/service.go":                     "finds a free port, and closes it at once",
	"host/plugin/bundle/oci/ocitest/registry.go": "a registry for tests",
	"host/internal/gitexec/gitexectest/lfs.go":   "a server for tests, which no git-lfs may ask",
	"examples/internal/lesson/model.go":          "a model for the tests of the lessons",
	"examples/service/main.go":                   "a program of an embedder, with a listener of its own",
}

// TestListenersInTheSource: no other file of the repository opens a listener.
func TestListenersInTheSource(t *testing.T) {
	root := filepath.Join("..", "..")
	left := map[string]bool{}
	for name := range listeningFiles {
		left[name] = true
	}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		for _, line := range strings.Split(string(text), "\n") {
			code, _, _ := strings.Cut(line, "//")
			code = strings.NewReplacer("net.Listener", "", "net.ListenConfig{}).Listen", "net.Listen").Replace(code)
			if listens.MatchString(code) {
				delete(left, name)
				if listeningFiles[name] == "" {
					t.Errorf("%s: %s: a listener that serve.Listeners does not have", name, strings.TrimSpace(line))
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range left {
		t.Errorf("%s opens no listener any more", name)
	}
}
