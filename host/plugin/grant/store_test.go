package grant_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/plugin/grant"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// open returns the grants of a fresh folder of a user with a key of their own.
func open(t testing.TB) (s *grant.Store, opt grant.Options) {
	t.Helper()
	dir := t.TempDir()
	opt = grant.Options{File: filepath.Join(dir, "project", "plugins", "grants.json"), Key: filepath.Join(dir, "home", "sentinel", "grants.key")}
	return grant.New(opt), opt
}

// aPlugin is one version of a plugin that asks for events and hosts.
func aPlugin(digest string, hosts ...string) plugin.Info {
	p := plugin.Info{Name: "slack", Version: "v" + digest, Digest: digest, Source: "slack.wasm", Permissions: []plugin.Permission{{Use: "emit", Names: []string{"a:*"}, Reason: "r"}}}
	if len(hosts) > 0 {
		p.Permissions = append(p.Permissions, plugin.Permission{Use: "http", Names: hosts, Reason: "r"})
	}
	return p
}

// allow makes the entry by which a person allows all of it.
func allow(t testing.TB, s *grant.Store, p plugin.Info, change ...func(*grant.Entry)) {
	t.Helper()
	e := grant.Entry{Name: p.Name, Digest: p.Digest, Version: p.Version, File: p.Source, By: "ann", Grant: plugin.Grant{Allow: p.Permissions}}
	for _, c := range change {
		c(&e)
	}
	if err := s.Set(context.Background(), e); err != nil {
		t.Fatal(err)
	}
}

// judge returns the decision about a version: "" for allowed, else the reason.
func judge(t testing.TB, s *grant.Store, p plugin.Info) string {
	t.Helper()
	_, err := s.Grant(context.Background(), p)
	if err != nil && abi.CodeOf(err) != abi.Denied {
		t.Fatalf("an error that does not deny: %v", err)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func wants(t testing.TB, what, got, want string) {
	t.Helper()
	if want == "" && got != "" || !strings.Contains(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// TestVersions follows a plugin through changes of its file.
func TestVersions(t *testing.T) {
	s, opt := open(t)
	wants(t, "nothing said", judge(t, s, aPlugin("1", "a.com")), "waits for approval: it asks for emit a:*, http a.com")
	wants(t, "asks for nothing", judge(t, s, plugin.Info{Name: "free", Digest: "f"}), "")
	if _, err := os.Stat(opt.Key); !os.IsNotExist(err) {
		t.Errorf("asking made a key: %v", err)
	}
	allow(t, s, aPlugin("1", "a.com"))
	wants(t, "allowed", judge(t, s, aPlugin("1", "a.com")), "")
	wants(t, "more", judge(t, s, aPlugin("2", "a.com", "b.com")), "asks for more than was allowed: http b.com")
	moved := aPlugin("2", "a.com")
	moved.Source = "other.wasm"
	wants(t, "another file", judge(t, s, moved), `the grant is for the file "slack.wasm"`)
	parked := aPlugin("2", "a.com")
	parked.Source = ""
	wants(t, "no file", judge(t, s, parked), "was not allowed")
	wants(t, "as much", judge(t, s, aPlugin("2", "a.com")), "")
	e, seal, err := s.Entry("slack")
	if err != nil || seal != grant.Good || e.Digest != "2" || e.Carried == nil || e.Carried.From != "1" || len(e.Earlier) != 1 || e.Earlier[0].Digest != "1" {
		t.Errorf("carried over, the entry is %+v, %s, %v", e, seal, err)
	}
	wants(t, "the version before", judge(t, s, aPlugin("1", "a.com")), "")
	wants(t, "less", judge(t, s, aPlugin("3")), "")
	if g, _ := s.Grant(t.Context(), aPlugin("3")); len(g.Allow) != 1 {
		t.Errorf("one that asks for less has %+v", g)
	}
	allow(t, s, aPlugin("4", "a.com"), func(e *grant.Entry) { e.Pin = true })
	wants(t, "pinned", judge(t, s, aPlugin("5", "a.com")), "for the very bytes")
	allow(t, s, aPlugin("4", "a.com"), func(e *grant.Entry) { e.Denied = true })
	wants(t, "denied", judge(t, s, aPlugin("4", "a.com")), "was denied by ann")
	wants(t, "denied before", judge(t, s, aPlugin("1", "a.com")), "was denied by ann")
	wants(t, "denied, though it asks for nothing", judge(t, s, plugin.Info{Name: "slack", Digest: "9"}), "was denied")
	allow(t, s, aPlugin("4", "a.com"))
	wants(t, "allowed again, an older file that asks for as much", judge(t, s, aPlugin("1", "a.com")), "")
}

// TestEarlierEntry: an entry that was sealed here counts only as long as it is the newest of its plugin: a commit may put
// back one from before the plugin was denied.
func TestEarlierEntry(t *testing.T) {
	s, opt := open(t)
	allow(t, s, aPlugin("1", "a.com"))
	before, err := os.ReadFile(opt.File)
	if err != nil {
		t.Fatal(err)
	}
	allow(t, s, aPlugin("1", "a.com"), func(e *grant.Entry) { e.Denied = true })
	if err := os.WriteFile(opt.File, before, 0o600); err != nil {
		t.Fatal(err)
	}
	wants(t, "put back", judge(t, s, aPlugin("1", "a.com")), "is an earlier one")
	allow(t, s, aPlugin("1", "a.com"))
	wants(t, "allowed again", judge(t, s, aPlugin("1", "a.com")), "")
}

// TestForeign shows that a file that another user created, or edited, grants
// nothing, however it came there.
func TestForeign(t *testing.T) {
	s, opt := open(t)
	p := aPlugin("1", "a.com")
	allow(t, s, p)
	good, err := os.ReadFile(opt.File)
	if err != nil {
		t.Fatal(err)
	}
	write := func(path string, text []byte) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, text, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	other := opt
	other.File = filepath.Join(t.TempDir(), "plugins", "grants.json")
	write(other.File, good)
	wants(t, "copied to another folder", judge(t, grant.New(other), p), "was granted elsewhere")
	stranger := opt
	stranger.Key = filepath.Join(t.TempDir(), "k", "grants.key")
	wants(t, "another user without a key", judge(t, grant.New(stranger), p), "was granted elsewhere")
	mate := stranger
	mate.File = other.File
	allow(t, grant.New(mate), aPlugin("x"), func(e *grant.Entry) { e.Name = "makes-a-key" })
	wants(t, "another user with a key", judge(t, grant.New(stranger), p), "was granted elsewhere")
	trusting := stranger
	trusting.TrustUnsealed = true
	wants(t, "a container that trusts its image", judge(t, grant.New(trusting), p), "")
	wants(t, "asks for nothing", judge(t, grant.New(stranger), plugin.Info{Name: "slack", Digest: "1"}), "")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Dir(opt.File), link); err != nil {
		t.Fatal(err)
	}
	linked := opt
	linked.File = filepath.Join(link, "grants.json")
	wants(t, "the same folder by another path", judge(t, grant.New(linked), p), "")

	for what, edit := range map[string][2]string{
		"host":      {"a.com", "evil.com"},
		"digest":    {`"digest": "1"`, `"digest": "2"`},
		"pin":       {`"file":`, `"pin": true, "file":`},
		"private":   {`"grant": {`, `"grant": {"private": true,`},
		"name":      {`"slack": {`, `"slick": {`},
		"seal":      {`"seal": "`, `"seal": "0`},
		"no seal":   {`"seal"`, `"By"`},
		"unknown":   {`"file":`, `"files": [], "file":`},
		"twice":     {`"file":`, `"FILE": "x", "file":`},
		"format":    {`"format": 1`, `"format": 2`},
		"torn":      {"}\n", ""},
		"two texts": {"\n}\n", "\n}\n{}"},
	} {
		text := []byte(strings.Replace(string(good), edit[0], edit[1], 1))
		if bytes.Equal(text, good) {
			t.Fatalf("%s changes nothing in %s", what, good)
		}
		write(opt.File, text)
		for _, asked := range []plugin.Info{p, {Name: "slick", Digest: "1", Source: "slack.wasm", Permissions: p.Permissions}, aPlugin("2", "a.com"), aPlugin("1", "evil.com")} {
			if judge(t, s, asked) == "" {
				t.Errorf("%s edited: %s %s is allowed", what, asked.Name, asked.Digest)
			}
		}
	}
	write(opt.File, good[:len(good)/2])
	if err := s.Set(t.Context(), grant.Entry{Name: "b"}); abi.CodeOf(err) != abi.Denied {
		t.Errorf("a file that cannot be read is written over: %v", err)
	}
	write(opt.File, good)
	wants(t, "as it was", judge(t, s, p), "")
	if err := os.Chmod(opt.Key, 0o644); err != nil {
		t.Fatal(err)
	}
	wants(t, "a key that others may read", judge(t, s, p), "others may read")
}

// TestNoPlaceForKey says what to do on a machine without a home.
func TestNoPlaceForKey(t *testing.T) {
	_, opt := open(t)
	opt.Key = ""
	err := grant.New(opt).Set(t.Context(), grant.Entry{Name: "a"})
	if e := abi.As(err); e == nil || e.Code != abi.Unavailable || !strings.Contains(e.Hint, "SENTINEL_PLUGINS_TRUST_GRANTS") {
		t.Errorf("%v", err)
	}
}

// TestManyWriters has several stores, as several processes have, decide at the
// same time: no word is lost, and readers see the file whole at any moment.
func TestManyWriters(t *testing.T) {
	_, opt := open(t)
	const writers, each = 8, 12
	ctx, stop := context.WithCancel(t.Context())
	var reading, writing sync.WaitGroup
	reading.Go(func() {
		for s := grant.New(opt); ctx.Err() == nil; {
			if _, err := s.Names(); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for w := range writers {
		writing.Go(func() {
			s := grant.New(opt)
			for i := range each {
				if err := s.Set(ctx, grant.Entry{Name: fmt.Sprintf("p%d_%d", w, i), Digest: "d", Denied: i%2 == 0}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	stop()
	reading.Wait()
	s := grant.New(opt)
	names, err := s.Names()
	if err != nil || len(names) != writers*each {
		t.Fatalf("%d entries are left, want %d: %v", len(names), writers*each, err)
	}
	for _, name := range names {
		if _, seal, err := s.Entry(name); seal != grant.Good || err != nil {
			t.Errorf("%s: %s, %v", name, seal, err)
		}
	}
	left, err := os.ReadDir(filepath.Dir(opt.File))
	if err != nil || len(left) != 1 {
		t.Errorf("the folder holds %v, %v", left, err)
	}
	if keys, err := os.ReadDir(filepath.Dir(opt.Key)); err != nil || len(keys) != 2 { // and the notes of the newest entries
		t.Errorf("the user's folder holds %v, %v", keys, err)
	}
}

// TestRoundTrip writes every field and reads it as it was.
func TestRoundTrip(t *testing.T) {
	s, opt := open(t)
	p := aPlugin("1", "a.com")
	want := grant.Entry{Name: "slack", Digest: "1", Version: "1", File: "slack.wasm", By: "ann <&> Bob", At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Pin: true,
		Grant: plugin.Grant{Allow: p.Permissions, Reuse: true, Private: true, Secrets: map[string][]string{"B": {"a.com"}, "A": nil}, Folders: map[string]plugin.Folder{"data": {Path: "/x", Write: true}}, Memory: 1 << 20, TimeoutMs: 5}}
	if err := s.Set(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	got, seal, err := s.Entry("slack")
	got.Seal = ""
	if diff := cmp.Diff(want, got); diff != "" || seal != grant.Good || err != nil {
		t.Errorf("%s, %v (-want +got):\n%s", seal, err, diff)
	}
	info, err := os.Stat(opt.Key)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v, %v", info, err)
	}
}

// FuzzFile reads any text without a panic, and what it reads it writes so that
// it reads the same again.
func FuzzFile(f *testing.F) {
	s, opt := open(f)
	allow(f, s, aPlugin("1", "a.com"))
	good, err := os.ReadFile(opt.File)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"format":1,"plugins":null}`))
	f.Add([]byte(`{"format":1,"plugins":{"a":{"grant":{"secrets":{"A":null}},"at":"2026-01-01T00:00:00Z","digest":""}}}`))
	f.Add([]byte(`[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[`))
	f.Fuzz(func(t *testing.T, src []byte) {
		once, err := grant.Recode(src)
		if err != nil {
			return
		}
		twice, err := grant.Recode(once)
		if err != nil || !bytes.Equal(once, twice) {
			t.Errorf("%s reads as %s, and again as %s: %v", src, once, twice, err)
		}
	})
}
