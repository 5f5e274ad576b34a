package bundle_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/plugin/bundle"
	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/lock"
	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/oci"
	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/oci/ocitest"
	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/sign"
	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/wire"
	"github.com/sentinel-runtime/sentinel/runtime/guest"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

func TestMain(m *testing.M) {
	guest.ServeChild()
	if dir := os.Getenv("INSTALL_INTO"); dir != "" {
		installForever(dir, os.Getenv("INSTALL_FROM"))
	}
	os.Exit(m.Run())
}

// installForever installs two versions in turn until it is killed.
func installForever(dir, from string) {
	for i := 0; ; i++ {
		p, err := bundle.Open(context.Background(), filepath.Join(from, fmt.Sprintf("v%d.wasm", i%2+1)), bundle.Options{Describe: said(manifest("count", fmt.Sprint(i%2+1)))})
		if err == nil {
			_, err = p.Install(context.Background(), lock.Folder{Dir: dir}, bundle.InstallOptions{})
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		if i == 0 {
			fmt.Println("installed")
		}
	}
}

// count is a guest in versions.
func count(t testing.TB, version string) []byte {
	t.Helper()
	code, err := os.ReadFile("../../../runtime/internal/wasm/testdata/wat/count.wasm")
	if err != nil {
		t.Fatal(err)
	}
	return []byte(strings.Replace(string(code), `"version":"1"`, fmt.Sprintf(`"version":%q`, version), 1))
}

func manifest(name, version string, permissions ...guest.Permission) guest.Manifest {
	return guest.Manifest{Name: name, Version: version, ABI: 1, Permissions: permissions, Steps: []guest.StepType{{Type: name, Summary: "Counts.", Fields: json.RawMessage(`{"type":"object"}`)}}}
}

// said answers for a guest that is not run.
func said(m guest.Manifest) func(context.Context, []byte) (guest.Manifest, error) {
	return func(context.Context, []byte) (guest.Manifest, error) { return m, nil }
}

func write(t testing.TB, file string, content []byte) string {
	t.Helper()
	if err := os.WriteFile(file, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func open(t testing.TB, source string, opt bundle.Options) *bundle.Plugin {
	t.Helper()
	p, err := bundle.Open(t.Context(), source, opt)
	if err != nil {
		t.Fatalf("open %s: %v", source, err)
	}
	return p
}

// refused is an error with this code and these words.
func refused(t testing.TB, what string, err error, code abi.Code, words ...string) {
	t.Helper()
	if abi.CodeOf(err) != code {
		t.Errorf("%s: error %v (%s), want %s", what, err, abi.CodeOf(err), code)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: error %v, want one with %q", what, err, w)
		}
	}
}

// TestFile: a real guest from a file, again, a newer one, and a tampered one.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	folder := lock.Folder{Dir: filepath.Join(dir, "plugins")}
	file := write(t, filepath.Join(dir, "any.wasm"), count(t, "1"))
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	opt := bundle.InstallOptions{Now: func() time.Time { return at }}

	p := open(t, file, bundle.Options{Digest: lock.Digest(count(t, "1"))})
	c, err := p.Install(t.Context(), folder, opt)
	if err != nil || c.File != "count.wasm" || c.Change != bundle.Installed {
		t.Fatalf("install: %+v, %v", c, err)
	}
	want := lock.Entry{Name: "count", Version: "1", Digest: p.Digest, Size: int64(len(p.Module)), Source: file, Steps: []string{"count"}, At: at.Truncate(time.Second)}
	read, err := folder.Read()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, read.Plugins["count.wasm"]); diff != "" {
		t.Error(diff)
	}
	before, _ := os.ReadFile(folder.Path(lock.FileName))
	if c, err = p.Install(t.Context(), folder, bundle.InstallOptions{}); err != nil || c.Change != bundle.Unchanged {
		t.Errorf("again: %+v, %v", c, err)
	}
	if after, _ := os.ReadFile(folder.Path(lock.FileName)); !bytes.Equal(before, after) {
		t.Error("installing it again has changed the lock")
	}

	write(t, folder.Path("count.wasm"), count(t, "6")) // a change by hand
	states, err := bundle.Look(folder)
	if err != nil || len(states) != 1 || states[0].State != bundle.Changed {
		t.Errorf("tampered: %+v, %v", states, err)
	}
	if c, err = p.Install(t.Context(), folder, opt); err != nil || c.Change != bundle.Updated || folder.Check("count.wasm", p.Digest) != nil {
		t.Errorf("mended: %+v, %v", c, err)
	}
	write(t, file, count(t, "2"))
	if c, err = open(t, file, bundle.Options{}).Install(t.Context(), folder, opt); err != nil || c.Change != bundle.Updated || c.Before.Version != "1" || c.Now.Version != "2" {
		t.Errorf("newer: %+v, %v", c, err)
	}
	_, err = bundle.Open(t.Context(), file, bundle.Options{Digest: p.Digest})
	refused(t, "another digest", err, abi.Denied, p.Digest, lock.Digest(count(t, "2")))
}

// TestWhatIsNoPlugin is refused before anything is written.
func TestWhatIsNoPlugin(t *testing.T) {
	dir := t.TempDir()
	at := func(name string, content []byte) string { return write(t, filepath.Join(dir, name), content) }
	big := append([]byte("\x00asm\x01\x00\x00\x00"), make([]byte, lock.MaxModule)...)
	for what, tt := range map[string]struct {
		source string
		code   abi.Code
		words  string
	}{
		"nothing":    {filepath.Join(dir, "none.wasm"), abi.NotFound, "no file"},
		"folder":     {dir, abi.BadFields, "is not a regular file"},
		"text":       {at("text.wasm", []byte("hello")), abi.BadFields, "neither a WebAssembly module nor"},
		"empty":      {at("empty.wasm", nil), abi.BadFields, "neither a WebAssembly module nor"},
		"compressed": {at("x.tgz", []byte("\x1f\x8b whatever")), abi.BadFields, "compressed"},
		"zip":        {at("x.zip", []byte("PK\x03\x04 whatever")), abi.BadFields, "compressed"},
		"half":       {at("half.wasm", count(t, "1")[:200]), abi.BadFields, "module"},
		"too large":  {at("big.wasm", big), abi.Limit, "at most"},
		"scheme":     {"ftp://example.com/x.wasm", abi.Denied, "scheme"},
		"http":       {"http://example.com/x.wasm", abi.Denied, "http"},
		"reference":  {"oci://example.com", abi.BadFields, "HOST/NAME:TAG"},
		"address":    {"https://me:secret@[::1", abi.BadFields, "cannot be read"},
	} {
		_, err := bundle.Open(t.Context(), tt.source, bundle.Options{})
		refused(t, what, err, tt.code, tt.words)
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error tells the password: %v", what, err)
		}
	}
	_, err := bundle.Open(t.Context(), at("x.wasm", count(t, "1")), bundle.Options{Digest: "md5:1"})
	refused(t, "digest", err, abi.BadFields)
}

// TestSigned: with trusted keys only what they signed is taken.
func TestSigned(t *testing.T) {
	dir := t.TempDir()
	public, secret, err := sign.Generate()
	if err != nil {
		t.Fatal(err)
	}
	module := count(t, "1")
	file := write(t, filepath.Join(dir, "count.wasm"), module)
	statement := sign.Statement{Name: "count", Version: "1", File: "count.wasm", At: time.Now()}
	keys := bundle.Options{Keys: []sign.PublicKey{public}}

	_, err = bundle.Open(t.Context(), file, keys)
	refused(t, "unsigned", err, abi.Denied, "it is not signed")
	exception := keys
	exception.AllowUnsigned = true
	if p := open(t, file, exception); p.Signer != nil {
		t.Error("an unsigned one has a signer")
	}
	write(t, file+sign.Suffix, sign.Sign(secret, module, statement))
	p := open(t, file, keys)
	if p.Signer == nil || p.Signer.Key.ID() != public.ID() {
		t.Errorf("signer %+v", p.Signer)
	}
	folder := lock.Folder{Dir: filepath.Join(dir, "plugins")}
	if c, err := p.Install(t.Context(), folder, bundle.InstallOptions{}); err != nil || c.Now.Signer != public.ID() || c.Now.Signature == "" {
		t.Errorf("install: %+v, %v", c, err)
	}
	if p := open(t, file, bundle.Options{}); p.Signer != nil || p.Signature == nil {
		t.Error("without keys a signature says nothing")
	}
	// An exception for what is not signed is none for what is signed badly.
	write(t, file, count(t, "2"))
	_, err = bundle.Open(t.Context(), file, exception)
	refused(t, "changed", err, abi.Denied, "was changed after it was signed")
	// Signed, but as something that it is not.
	statement.Name = "slack"
	write(t, file+sign.Suffix, sign.Sign(secret, count(t, "2"), statement))
	_, err = bundle.Open(t.Context(), file, keys)
	refused(t, "misnamed", err, abi.Denied, "signed it as slack 1")
}

// TestNames: a plugin's place is its own.
func TestNames(t *testing.T) {
	dir := t.TempDir()
	folder := lock.Folder{Dir: dir}
	from := t.TempDir()
	file := write(t, filepath.Join(from, "x.wasm"), count(t, "1"))
	slack := open(t, file, bundle.Options{Describe: said(manifest("slack", "1"))})
	mail := open(t, file, bundle.Options{Describe: said(manifest("mail", "1"))})
	install := func(p *bundle.Plugin, opt bundle.InstallOptions) error {
		_, err := p.Install(t.Context(), folder, opt)
		return err
	}
	write(t, filepath.Join(dir, "slack.wasm"), []byte("by hand"))
	refused(t, "by hand", install(slack, bundle.InstallOptions{}), abi.Conflict, "was not installed")
	if err := install(slack, bundle.InstallOptions{Replace: true}); err != nil {
		t.Error(err)
	}
	refused(t, "elsewhere", install(slack, bundle.InstallOptions{Name: "other.wasm"}), abi.Conflict, `installed as "slack.wasm"`)
	refused(t, "another's", install(mail, bundle.InstallOptions{Name: "slack.wasm"}), abi.Conflict, `that of plugin "slack"`)
	for _, bad := range []string{"../x.wasm", "x", ".x.wasm", "/tmp/x.wasm"} {
		refused(t, bad, install(mail, bundle.InstallOptions{Name: bad}), abi.BadFields, "invalid file name")
	}
	if e, err := bundle.Uninstall(t.Context(), folder, "slack"); err != nil || e.Name != "slack" {
		t.Errorf("uninstall: %+v, %v", e, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "slack.wasm")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
	_, err := bundle.Uninstall(t.Context(), folder, "slack")
	refused(t, "again", err, abi.NotFound)
}

// TestLockByHand: files that were dropped are locked as they are, and unlocked.
func TestLockByHand(t *testing.T) {
	folder := lock.Folder{Dir: t.TempDir()}
	write(t, folder.Path("count.wasm"), count(t, "1"))
	write(t, folder.Path("broken.wasm"), []byte("no module"))
	states, err := bundle.Lock(t.Context(), folder, "", bundle.Options{})
	if err != nil || len(states) != 2 || states[0].State != bundle.Unusable || states[1].State != bundle.Locked || states[1].Entry.Version != "1" {
		t.Fatalf("lock: %+v, %v", states, err)
	}
	write(t, folder.Path("count.wasm"), count(t, "2"))
	if states, err = bundle.Lock(t.Context(), folder, "count.wasm", bundle.Options{}); err != nil || states[0].State != bundle.Changed {
		t.Errorf("a change is locked over: %+v, %v", states, err)
	}
	if _, err := bundle.Unlock(t.Context(), folder, "count.wasm"); err != nil || folder.Check("count.wasm", lock.Digest(count(t, "2"))) != nil {
		t.Errorf("unlock: %v", err)
	}
	_, err = bundle.Lock(t.Context(), folder, "none.wasm", bundle.Options{})
	refused(t, "nothing", err, abi.NotFound)
}

// TestMore: what a newer version asks for beyond the old.
func TestMore(t *testing.T) {
	http := func(names ...string) guest.Permission {
		return guest.Permission{Use: "http", Names: names, Reason: "it must"}
	}
	folder := lock.Folder{Dir: t.TempDir()}
	file := write(t, filepath.Join(t.TempDir(), "x.wasm"), count(t, "1"))
	for i, tt := range []struct {
		permissions []guest.Permission
		want        []lock.Permission
	}{
		{[]guest.Permission{http("a.example")}, []lock.Permission{{Use: "http", Names: []string{"a.example"}}}},
		{[]guest.Permission{http("a.example"), http("b.example")}, []lock.Permission{{Use: "http", Names: []string{"b.example"}}}},
		{[]guest.Permission{http("b.example")}, nil},
		{[]guest.Permission{http("b.example"), {Use: "llm", Names: []string{"x/y"}, Reason: "r"}}, []lock.Permission{{Use: "llm", Names: []string{"x/y"}}}},
		{[]guest.Permission{{Use: "llm", Reason: "r"}}, []lock.Permission{{Use: "llm"}}},
		{[]guest.Permission{{Use: "llm", Names: []string{"x/z"}, Reason: "r"}}, nil},
	} {
		// Other bytes each time, behind a section that says nothing.
		write(t, file, append(count(t, "1"), 0, 2, 1, byte('a'+i)))
		c, err := open(t, file, bundle.Options{Describe: said(manifest("x", fmt.Sprint(i), tt.permissions...))}).Install(t.Context(), folder, bundle.InstallOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, c.More); diff != "" {
			t.Errorf("version %d: %s", i, diff)
		}
	}
}

// TestPackage goes all the way: signed, packed, pushed, installed from the file
// and from the registry.
func TestPackage(t *testing.T) {
	dir := t.TempDir()
	public, secret, err := sign.Generate()
	if err != nil {
		t.Fatal(err)
	}
	module := count(t, "1")
	file := write(t, filepath.Join(dir, "count.wasm"), module)
	write(t, file+sign.Suffix, sign.Sign(secret, module, sign.Statement{Name: "count", Version: "1", File: "count.wasm"}))
	pkg, err := open(t, file, bundle.Options{}).Pack(bundle.About{Licenses: "MIT", Source: "https://example.com/count"})
	if err != nil {
		t.Fatal(err)
	}
	tar := filepath.Join(dir, "count-1.tar")
	if err := pkg.Write(tar); err != nil {
		t.Fatal(err)
	}
	r := ocitest.New(false)
	defer r.Close()
	opt := bundle.Options{Keys: []sign.PublicKey{public}, Registry: oci.RegistryOptions{Wire: wire.Options{Plain: true}}}
	if _, err := pkg.Artifact.Push(t.Context(), r.Host()+"/count:1", opt.Registry); err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{tar, "oci://" + r.Host() + "/count:1", "oci://" + r.Host() + "/count@" + pkg.Digest} {
		p := open(t, source, opt)
		if p.Digest != lock.Digest(module) || p.Signer == nil || p.Manifest.Name != "count" {
			t.Errorf("from %s: %+v", source, p.Signer)
		}
		if strings.HasPrefix(source, "oci://") && p.Source != "oci://"+r.Host()+"/count:1@"+pkg.Digest && p.Source != source {
			t.Errorf("from %s: the source is noted as %s", source, p.Source)
		}
	}
	// What the package says must be what the plugin says.
	liar, err := oci.New("count.wasm", module, []byte(`{"name":"harmless","version":"1"}`), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := liar.Push(t.Context(), r.Host()+"/count:2", opt.Registry); err != nil {
		t.Fatal(err)
	}
	opt.AllowUnsigned = true
	_, err = bundle.Open(t.Context(), "oci://"+r.Host()+"/count:2", opt)
	refused(t, "a package that lies", err, abi.Denied, "harmless")
}

// TestAddress: from a web server, by its rules.
func TestAddress(t *testing.T) {
	public, secret, err := sign.Generate()
	if err != nil {
		t.Fatal(err)
	}
	module := count(t, "1")
	var broken bool
	mux := http.NewServeMux()
	mux.HandleFunc("/count.wasm", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(module) })
	mux.HandleFunc("/count.wasm.minisig", func(w http.ResponseWriter, _ *http.Request) {
		if broken {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_, _ = w.Write(sign.Sign(secret, module, sign.Statement{Name: "count", Version: "1", File: "count.wasm"}))
	})
	mux.HandleFunc("/unsigned.wasm", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(module) })
	mux.HandleFunc("/endless.wasm", func(w http.ResponseWriter, _ *http.Request) {
		block := make([]byte, 1<<20)
		for {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/away.wasm", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://me:secret@"+r.Host+"/count.wasm", http.StatusFound)
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	opt := bundle.Options{Keys: []sign.PublicKey{public}, Registry: oci.RegistryOptions{Wire: wire.Options{Plain: true, Stall: 5 * time.Second}}}

	at := strings.Replace(s.URL, "http://", "http://me:hush@", 1)
	p := open(t, at+"/count.wasm?token=hush#hush", opt)
	if p.Signer == nil || p.Source != s.URL+"/count.wasm" {
		t.Errorf("signer %v, source %s", p.Signer, p.Source)
	}
	_, err = bundle.Open(t.Context(), s.URL+"/unsigned.wasm", opt)
	refused(t, "unsigned", err, abi.Denied, "not signed")
	_, err = bundle.Open(t.Context(), s.URL+"/endless.wasm", opt)
	refused(t, "endless", err, abi.Limit, "more than")
	_, err = bundle.Open(t.Context(), s.URL+"/none.wasm", opt)
	refused(t, "missing", err, abi.NotFound)
	_, err = bundle.Open(t.Context(), s.URL+"/away.wasm", opt)
	refused(t, "credentials in a redirect", err, abi.Denied, "credentials")
	// A server that cannot give the signature must not make it an unsigned plugin.
	broken = true
	exception := opt
	exception.AllowUnsigned = true
	_, err = bundle.Open(t.Context(), at+"/count.wasm?token=hush", exception)
	refused(t, "no signature to be had", err, abi.Unavailable, "502")
	if strings.Contains(err.Error(), "hush") {
		t.Errorf("the error tells a secret: %v", err)
	}
	plain := opt
	plain.Registry.Wire.Plain = false
	_, err = bundle.Open(t.Context(), s.URL+"/count.wasm", plain)
	refused(t, "http", err, abi.Denied, "http")
}

// TestKill kills a process that installs, at moments that it does not choose: a
// host that starts then finds a whole version that its lock allows.
func TestKill(t *testing.T) {
	rounds := 25
	if testing.Short() {
		rounds = 8
	}
	from := t.TempDir()
	v1, v2 := count(t, "1"), count(t, "2")
	write(t, filepath.Join(from, "v1.wasm"), v1)
	write(t, filepath.Join(from, "v2.wasm"), v2)
	folder := lock.Folder{Dir: t.TempDir()}
	for i := range rounds {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "INSTALL_INTO="+folder.Dir, "INSTALL_FROM="+from)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line := make([]byte, 9)
		if _, err := out.Read(line); err != nil || string(line) != "installed" {
			t.Fatalf("child: %q, %v", line, err)
		}
		time.Sleep(time.Duration(i*700) * time.Microsecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		code, err := folder.Module("count.wasm")
		if err != nil || !bytes.Equal(code, v1) && !bytes.Equal(code, v2) {
			t.Fatalf("round %d: %d bytes, %v", i, len(code), err)
		}
		if err := folder.Check("count.wasm", lock.Digest(code)); err != nil {
			t.Fatalf("round %d: a start would refuse it: %v", i, err)
		}
		names, err := folder.Modules()
		if err != nil || len(names) != 1 {
			t.Fatalf("round %d: modules %v, %v", i, names, err)
		}
	}
}

// TestInstallers: several at one time, each whole.
func TestInstallers(t *testing.T) {
	folder := lock.Folder{Dir: t.TempDir()}
	from := t.TempDir()
	var wg sync.WaitGroup
	for i := range 8 {
		name := fmt.Sprintf("p%d", i)
		file := write(t, filepath.Join(from, name+".wasm"), count(t, "1"))
		wg.Go(func() {
			p, err := bundle.Open(context.Background(), file, bundle.Options{Describe: said(manifest(name, "1"))})
			if err == nil {
				_, err = p.Install(context.Background(), folder, bundle.InstallOptions{})
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	states, err := bundle.Look(folder)
	if err != nil || len(states) != 8 {
		t.Fatalf("%d files, %v", len(states), err)
	}
	for _, s := range states {
		if s.State != bundle.Locked {
			t.Errorf("%s is %s", s.File, s.State)
		}
	}
}
