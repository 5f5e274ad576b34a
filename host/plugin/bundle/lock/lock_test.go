package lock_test

import (
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

	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/lock"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

var (
	one = []byte("\x00asm one")
	two = []byte("\x00asm two")
)

func entry(version string) lock.Entry {
	return lock.Entry{Name: "slack", Version: version, Source: "/tmp/slack.wasm", At: time.Unix(1_700_000_000, 0).UTC(), Steps: []string{"slack"}}
}

func put(t *testing.T, f lock.Folder, name string, code []byte, e lock.Entry) {
	t.Helper()
	h, err := f.Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Release()
	if err := h.Put(name, code, e); err != nil {
		t.Fatal(err)
	}
}

// TestCheck: one byte, and both digests are named.
func TestCheck(t *testing.T) {
	f := lock.Folder{Dir: filepath.Join(t.TempDir(), "plugins")}
	if err := f.Check("slack.wasm", lock.Digest(one)); err != nil {
		t.Errorf("without a lock: %v", err)
	}
	put(t, f, "slack.wasm", one, entry("1"))
	if err := f.Check("slack.wasm", lock.Digest(one)); err != nil {
		t.Errorf("what was installed: %v", err)
	}
	if err := f.Check("slack.wasm", strings.TrimPrefix(lock.Digest(one), "sha256:")); err != nil {
		t.Errorf("without the algorithm: %v", err)
	}
	if err := f.Check("other.wasm", lock.Digest(two)); err != nil {
		t.Errorf("dropped by hand: %v", err)
	}
	err := f.Check("slack.wasm", lock.Digest(two))
	e := abi.As(err)
	if e == nil || e.Code != abi.Denied || !strings.Contains(e.Message, lock.Digest(one)) || !strings.Contains(e.Message, lock.Digest(two)) || !strings.Contains(e.Hint, "sentinel plugin unlock slack.wasm") {
		t.Errorf("another content: %v", err)
	}
	if err := os.WriteFile(f.Path(lock.FileName), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := f.Check("slack.wasm", lock.Digest(one)); abi.CodeOf(err) != abi.Denied {
		t.Errorf("with a lock that cannot be read: %v", err)
	}
}

// TestCrash ends a write after each of its steps: what is there then is loaded, is
// the old version or the new one, and the next writer mends the rest.
func TestCrash(t *testing.T) {
	crash := errors.New("crash")
	for _, step := range []string{"announced", "written"} {
		for _, first := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s first=%v", step, first), func(t *testing.T) {
				f := lock.Folder{Dir: t.TempDir()}
				if !first {
					put(t, f, "slack.wasm", one, entry("1"))
				}
				h, err := f.Hold(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				h.StopAt(func(done string) error {
					if done == step {
						return crash
					}
					return nil
				})
				if err := h.Put("slack.wasm", two, entry("2")); !errors.Is(err, crash) {
					t.Fatalf("put: %v", err)
				}
				h.Release()
				want, version := one, "1"
				if step == "written" {
					want, version = two, "2"
				}
				code, err := f.Module("slack.wasm")
				switch {
				case first && step == "announced":
					if !errors.Is(err, os.ErrNotExist) {
						t.Errorf("a file is there: %v", err)
					}
					if err := f.Check("slack.wasm", lock.Digest([]byte("by hand"))); err != nil {
						t.Errorf("nothing was installed, and a file by hand is refused: %v", err)
					}
				case err != nil || string(code) != string(want) || f.Check("slack.wasm", lock.Digest(code)) != nil:
					t.Errorf("%q, %v, %v", code, err, f.Check("slack.wasm", lock.Digest(code)))
				}
				h, err = f.Hold(t.Context()) // the next one mends
				if err != nil {
					t.Fatal(err)
				}
				h.Release()
				file, err := f.Read()
				e, ok := file.Plugins["slack.wasm"]
				switch {
				case err != nil || e.Next != nil:
					t.Errorf("still open: %+v, %v", e, err)
				case first && step == "announced":
					if ok {
						t.Errorf("an entry of nothing: %+v", e)
					}
				case e.Version != version || e.Digest != lock.Digest(want):
					t.Errorf("the entry is %+v", e)
				}
			})
		}
	}
}

// TestWritersWait: many at one time, and nothing is lost.
func TestWritersWait(t *testing.T) {
	f := lock.Folder{Dir: t.TempDir()}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			h, err := f.Hold(context.Background())
			if err == nil {
				err = h.Put(fmt.Sprintf("p%d.wasm", i), fmt.Appendf(nil, "\x00asm %d", i), entry("1"))
				h.Release()
				h.Release() // may be repeated
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	file, err := f.Read()
	if err != nil || len(file.Plugins) != 20 {
		t.Errorf("%d entries, %v", len(file.Plugins), err)
	}
	left, _ := filepath.Glob(f.Path(".*"))
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	h, err := f.Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Release()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := f.Hold(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("held twice: %v", err)
	}
}

// TestDecode: strict, and what is written is read.
func TestDecode(t *testing.T) {
	f := lock.Folder{Dir: t.TempDir()}
	e := entry("1")
	e.Permissions = []lock.Permission{{Use: "http", Names: []string{"api.example.com"}}}
	put(t, f, "slack.wasm", one, e)
	file, err := f.Read()
	if err != nil {
		t.Fatal(err)
	}
	e.Digest, e.Size = lock.Digest(one), int64(len(one))
	if diff := cmp.Diff(e, file.Plugins["slack.wasm"]); diff != "" {
		t.Error(diff)
	}
	text, err := os.ReadFile(f.Path(lock.FileName))
	if err != nil {
		t.Fatal(err)
	}
	good := string(text)
	for name, bad := range map[string]string{
		"empty": "", "torn": good[:len(good)/2], "more": good + "{}",
		"list":         "[]",
		"no format":    `{"plugins":{}}`,
		"other format": strings.Replace(good, `"format": 1`, `"format": 2`, 1),
		"unknown key":  strings.Replace(good, `"format": 1`, `"format": 1, "x": 1`, 1),
		"case":         strings.Replace(good, `"digest"`, `"Digest"`, 1),
		"twice":        strings.Replace(good, `"digest"`, `"digest": "", "digest"`, 1),
		"file twice":   strings.Replace(good, `"plugins": {`, `"plugins": {"slack.wasm": {"name":"a"},`, 1),
		"path":         strings.Replace(good, `"slack.wasm"`, `"../slack.wasm"`, 1),
		"no digest":    strings.Replace(good, "sha256:", "sha512:", 1),
		"size":         strings.Replace(good, `"size": 8`, `"size": -8`, 1),
		"deep":         strings.Replace(good, `"slack.wasm": {`, `"slack.wasm": {"next":{"next":{"next":{}}},`, 1),
		"nested":       `{"plugins":` + strings.Repeat("[", 1_000_000),
	} {
		if _, err := lock.Decode([]byte(bad)); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]bool{
		"a.wasm": true, "slack_message-1.2.wasm": true, "": false, ".wasm": false, ".hidden.wasm": false, "a.WASM": false, "a/b.wasm": false,
		`a\b.wasm`: false, "..wasm": false, "-a.wasm": false, "a.wasm ": false, "a b.wasm": false, "a\x00.wasm": false, strings.Repeat("a", 200) + ".wasm": false,
	} {
		if got := lock.ValidName(name); got != want {
			t.Errorf("%q is valid: %v", name, got)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"format":1,"plugins":{"a.wasm":{"name":"a","digest":"sha256:0000000000000000000000000000000000000000000000000000000000000000","size":1}}}`))
	f.Add([]byte(`{"format":1,"plugins":{"a.wasm":{"next":{"name":"a","digest":"sha256:0000000000000000000000000000000000000000000000000000000000000000","size":1}}}}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		file, err := lock.Decode(src)
		if err != nil {
			return
		}
		dir := lock.Folder{Dir: t.TempDir()}
		if err := os.WriteFile(dir.Path(lock.FileName), src, 0o644); err != nil {
			t.Fatal(err)
		}
		for name, e := range file.Plugins {
			if e.Digest != "" && dir.Check(name, e.Digest) != nil {
				t.Fatalf("%s is refused with its own digest", name)
			}
		}
	})
}
