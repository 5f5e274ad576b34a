package host

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/plugin/egress"
	"github.com/sentinel-runtime/sentinel/host/plugin/files"
	"github.com/sentinel-runtime/sentinel/host/redact"
	"github.com/sentinel-runtime/sentinel/host/secret"
	"github.com/sentinel-runtime/sentinel/plugins"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// granted is an operator with one answer for every plugin.
type granted struct{ allowed plugin.Grant }

func (g granted) Grant(context.Context, plugin.Info) (plugin.Grant, error) {
	return g.allowed, nil
}

// loopback says that every name is this machine.
type loopback struct{}

func (loopback) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

const (
	token  = `tok"en/+<lynx-otter-7>`
	marker = "echo-of-the-server"
)

// buildGuest compiles a guest of testdata with this Go.
func buildGuest(t *testing.T, name string) func() ([]byte, error) {
	t.Helper()
	if testing.Short() {
		t.Skip("builds a guest, which takes a while; run without -short")
	}
	out := filepath.Join(t.TempDir(), name+".wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-o", out, "./testdata/guests/"+name)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return func() ([]byte, error) { return os.ReadFile(out) }
}

// echo answers with all it was sent, in every form it can think of.
func echo(seen *[]string, mu *sync.Mutex) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		*seen = append(*seen, fmt.Sprintf("%s %s %s %s", r.Method, r.Header.Get("Authorization"), r.URL.Query().Get("token"), body))
		mu.Unlock()
		auth := r.Header.Get("Authorization")
		w.Header().Set("X-Echo", auth)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"marker": marker, "auth": auth, "query": r.URL.RawQuery, "body": string(body), "base64": base64.StdEncoding.EncodeToString([]byte(auth)),
			"hex": hex.EncodeToString(body), "url": url.QueryEscape(auth), "key": r.Header.Get("Idempotency-Key"), auth: strings.Repeat("long ", 2000),
		})
	}
}

// TestSecretsStayOutside runs a plugin of others that posts a file with a secret
// and keeps the answer. Nothing that the host keeps has the secret in it.
func TestSecretsStayOutside(t *testing.T) {
	guest := buildGuest(t, "outside")
	var mu sync.Mutex
	var seen []string
	server := httptest.NewTLSServer(echo(&seen, &mu))
	t.Cleanup(server.Close)
	port := server.URL[strings.LastIndexByte(server.URL, ':')+1:]
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())

	workspace, dir := t.TempDir(), t.TempDir()
	if err := os.MkdirAll(filepath.Join(workspace, "files", "in"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"files/in/file.txt": "of the folder", "secret.txt": "outside-canary"} {
		if err := os.WriteFile(filepath.Join(workspace, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../secret.txt", filepath.Join(workspace, "files", "link")); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug}))
	h := &Host{dir: dir, state: filepath.Join(dir, "state"), redactor: new(redact.Redactor), hashes: redact.NewHashes(), opt: Options{Logger: log}}
	h.secrets = secret.New(secret.Options{Redactor: h.redactor, Getenv: func(name string) string {
		return map[string]string{"SENTINEL_SECRET_TOKEN": token, "SENTINEL_SECRET_OTHER": "value-of-the-other"}[name]
	}})
	h.logs = openRunLogs(filepath.Join(h.state, "logs"), log)
	var err error
	h.rt, err = runtime.Open(t.Context(), runtime.Options{
		Dir:     h.state,
		Plugins: []plugin.Source{{Name: "builtin", Wasm: plugins.Builtin, Manifest: plugins.Manifest, Trusted: true}, {Name: "outside.wasm", Wasm: guest}},
		Grants: granted{plugin.Grant{
			Allow: []plugin.Permission{
				{Use: string(abi.UseHTTP), Names: []string{"api.example.com:" + port, "other.example.com:" + port}},
				{Use: string(abi.UseFolder), Names: []string{"data:rw"}}, {Use: string(abi.UseSecret), Names: []string{"TOKEN"}},
			},
			Private: true,
			Secrets: map[string][]string{"TOKEN": {"api.example.com:" + port}, "OTHER": {"api.example.com:" + port}},
			Folders: map[string]plugin.Folder{"data": {Path: "files", Write: true}},
		}},
		HTTP:     outgoing{egress.New(egress.Options{Secrets: h.secrets, Roots: roots, Resolver: loopback{}})},
		Folders:  folders{files.New(files.Options{}), nil},
		Redact:   h.redact,
		Observer: runtime.Observer{Progress: h.observe},
		Logger:   log,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var ends []runtime.Result
	for _, fail := range []bool{false, true} {
		src := fmt.Sprintf(`{"name":"carry","steps":[{"type":"outside","url":"https://api.example.com:%s/","elsewhere":"https://other.example.com:%s/","fail":%v,"outputTo":"got"}]}`, port, port, fail)
		def, problems := h.rt.Decode([]byte(src), "test.json")
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		id, err := h.rt.Start(ctx, def, runtime.StartOptions{Workspace: workspace})
		if err != nil {
			t.Fatal(err)
		}
		end, err := h.rt.Wait(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, end)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}

	// What was to happen did.
	quoted, _ := json.Marshal(token)
	body := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(quoted))
	want := fmt.Sprintf(`POST Bearer %s %s {"key":%s,"file":"of the folder"}`, token, token, body)
	if diff := cmp.Diff([]string{want, want}, seen); diff != "" {
		t.Errorf("the server saw (-want +got):\n%s", diff)
	}
	if ends[0].Status != sentinels.StatusCompleted || ends[1].Status != sentinels.StatusFailed {
		t.Fatalf("ended %s (%v) and %s", ends[0].Status, ends[0].Error, ends[1].Status)
	}
	var got struct {
		Entries int
		Body    string
		Refused []string
	}
	if err := json.Unmarshal(ends[0].Variables["got"], &got); err != nil {
		t.Fatal(err)
	}
	for i, part := range []string{`denied: fetch "other.example.com:` + port + `": secret "TOKEN" is not granted`, `denied: fetch "api.example.com:` + port + `": secret "OTHER" is not granted`,
		`denied: folder "etc"`, `denied: sentinel_file "../secret.txt"`, "denied: write", "denied: open"} {
		if i >= len(got.Refused) || !strings.HasPrefix(got.Refused[i], part) {
			t.Errorf("refused %q, want %q at %d", got.Refused, part, i)
		}
	}
	if got.Entries != 2 || !strings.Contains(got.Body, marker) || !strings.Contains(got.Body, "***") {
		t.Errorf("%d entries, body %.200s", got.Entries, got.Body)
	}
	written, err := os.ReadFile(filepath.Join(workspace, "files", "out", "answer.txt"))
	if err != nil || string(written) != got.Body {
		t.Errorf("written %.100q, %v", written, err)
	}
	if text, err := os.ReadFile(filepath.Join(workspace, "secret.txt")); err != nil || string(text) != "outside-canary" {
		t.Errorf("outside the folder: %q, %v", text, err)
	}

	// And nothing that was kept has the secret in it.
	kept := map[string][]byte{"the process's log": said.Bytes()}
	for i, end := range ends {
		if kept[fmt.Sprint("result ", i)], err = json.Marshal(end); err != nil {
			t.Fatal(err)
		}
	}
	for _, root := range []string{h.state, workspace} {
		if err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && filepath.Base(filepath.Dir(path)) != "cache" {
				kept[path], err = os.ReadFile(path)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	marked := 0
	for name, text := range kept {
		for _, form := range []string{token, body[1 : len(body)-1], string(quoted[1 : len(quoted)-1]), url.QueryEscape(token), url.PathEscape(token),
			base64.StdEncoding.EncodeToString([]byte("Bearer " + token))[12:30], hex.EncodeToString([]byte(token)), "lynx-otter", "outside-canary", "value-of-the-other"} {
			if bytes.Contains(text, []byte(form)) && filepath.Base(name) != "secret.txt" {
				t.Errorf("%s holds %q", name, form)
			}
		}
		if bytes.Contains(text, []byte(marker)) {
			marked++
			t.Logf("%s has the answer, without it", name)
		}
	}
	// The store, the log of each run, both results and the file that was written.
	if marked < 6 {
		t.Errorf("the answer was found in %d places: what is searched is not what is kept", marked)
	}
}
