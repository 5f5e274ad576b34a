package files_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/plugin/files"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// bench is a workspace with a folder that may be written, data, and one that
// may be read, docs; and an absolute one.
type bench struct {
	t         *testing.T
	workspace string
	absolute  string
	call      files.Call
	access    *files.Access
}

func newBench(t *testing.T, excluded ...string) *bench {
	t.Helper()
	b := &bench{t: t, workspace: t.TempDir(), absolute: t.TempDir()}
	for _, dir := range []string{"data", "docs"} {
		if err := os.Mkdir(filepath.Join(b.workspace, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for i, dir := range excluded {
		if !filepath.IsAbs(dir) {
			excluded[i] = filepath.Join(b.workspace, dir)
		}
	}
	b.access = files.New(files.Options{Host: command.HostFiles{Closed: excluded}})
	b.call = files.Call{Plugin: "probe", Workspace: b.workspace, Folders: map[string]files.Folder{
		"data": {Path: "data", Write: true}, "docs": {Path: "docs"}, "abs": {Path: b.absolute, Write: true}, "all": {Path: ".", Write: true}, "new": {Path: "made/late", Write: true},
		"none": {Path: "gone"}, "nowhere": {Path: "/nowhere/at/all"}, "out": {Path: "../.."}, "file": {Path: "plain"},
	}}
	return b
}

func (b *bench) put(name, text string) string {
	b.t.Helper()
	full := filepath.Join(b.workspace, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
	return full
}

type params map[string]any

func (b *bench) try(p params) (map[string]any, error) {
	b.t.Helper()
	raw, err := json.Marshal(p)
	if err != nil {
		b.t.Fatal(err)
	}
	call := b.call
	call.Request = raw
	out, err := b.access.Do(b.t.Context(), call)
	if err != nil {
		e := abi.As(err)
		if e == nil {
			b.t.Fatalf("%v: an error without a code: %v", p, err)
		}
		for _, path := range []string{b.workspace, b.absolute, os.TempDir()} {
			if strings.Contains(e.Message+e.Hint, path) {
				b.t.Errorf("%v: %+v tells a path of the host", p, e)
			}
		}
		return nil, err
	}
	if len(out) > 256<<10-8 {
		b.t.Errorf("%v: an answer of %d bytes", p, len(out))
	}
	var v map[string]any
	if err := json.Unmarshal(out, &v); err != nil {
		b.t.Fatalf("%v: %.200s: %v", p, out, err)
	}
	return v, nil
}

func (b *bench) do(p params) map[string]any {
	b.t.Helper()
	v, err := b.try(p)
	if err != nil {
		b.t.Fatalf("%v: %+v", p, abi.As(err))
	}
	return v
}

func (b *bench) deny(p params, code abi.Code, say string) {
	b.t.Helper()
	v, err := b.try(p)
	e := abi.As(err)
	if e == nil || e.Code != code || !strings.Contains(e.Message+" "+e.Hint, say) {
		b.t.Errorf("%v: %v, %+v, want %s and %q", p, v, e, code, say)
	}
}

func TestFiles(t *testing.T) {
	b := newBench(t)
	for _, word := range []string{"data", "abs", "new"} {
		if got := b.do(params{"folder": word, "op": "stat", "path": "a/b.txt"}); got["exists"] != false || len(got) != 1 {
			t.Errorf("stat of nothing: %v", got)
		}
		b.do(params{"folder": word, "op": "remove", "path": "a/b.txt"})
		if got := b.do(params{"folder": word, "op": "write", "path": "a/b.txt", "text": "one\n"}); got["size"] != 4.0 {
			t.Errorf("write: %v", got)
		}
		b.do(params{"folder": word, "op": "write", "path": "a/b.txt", "text": "twö\n"})
		b.do(params{"folder": word, "op": "write", "path": "bin", "text": "/wA=", "encoding": "base64"})
		if got := b.do(params{"folder": word, "op": "read", "path": "a/b.txt"}); cmp.Diff(map[string]any{"text": "twö\n", "size": 5.0, "truncated": false}, got) != "" {
			t.Errorf("read: %v", got)
		}
		if got := b.do(params{"folder": word, "op": "read", "path": "bin"}); cmp.Diff(map[string]any{"text": "/wA=", "encoding": "base64", "size": 2.0, "truncated": false}, got) != "" {
			t.Errorf("read: %v", got)
		}
		got := b.do(params{"folder": word, "op": "list"})
		entries, _ := got["entries"].([]any)
		if len(entries) != 2 || got["truncated"] != false {
			t.Fatalf("list: %v", got)
		}
		for i, want := range []map[string]any{{"name": "a", "dir": true, "size": 0.0}, {"name": "bin", "dir": false, "size": 2.0}} {
			e := entries[i].(map[string]any)
			delete(e, "modified")
			if diff := cmp.Diff(want, e); diff != "" {
				t.Errorf("list (-want +got):\n%s", diff)
			}
		}
		if got := b.do(params{"folder": word, "op": "stat"}); got["exists"] != true || got["dir"] != true {
			t.Errorf("stat of the folder: %v", got)
		}
		if got := b.do(params{"folder": word, "op": "stat", "path": "bin"}); got["dir"] != false || got["size"] != 2.0 || got["modified"] == "" {
			t.Errorf("stat: %v", got)
		}
		b.deny(params{"folder": word, "op": "remove", "path": "a"}, abi.Conflict, "not empty")
		b.do(params{"folder": word, "op": "remove", "path": "a/b.txt"})
		b.do(params{"folder": word, "op": "remove", "path": "a"})
		b.do(params{"folder": word, "op": "remove", "path": "a/b/c"})
		if got := b.do(params{"folder": word, "op": "list"}); len(got["entries"].([]any)) != 1 {
			t.Errorf("after removing: %v", got)
		}
	}
	if data, err := os.ReadFile(filepath.Join(b.workspace, "made/late/bin")); err != nil || string(data) != "\xff\x00" {
		t.Errorf("on the disk: %q, %v", data, err)
	}
}

func TestPieces(t *testing.T) {
	b := newBench(t)
	text := strings.Repeat("0123456789äöü€😀\n", 30_000)
	b.put("data/text", text)
	b.put("data/control", strings.Repeat("\x01", 300_000))
	b.put("data/half", "ab\xe2\x82") // cut in a character: no text
	for _, length := range []any{nil, 1, 3, 1000, 1 << 40} {
		if length == 1 || length == 3 {
			b.put("data/text", text[:600])
		} else {
			b.put("data/text", text)
		}
		for _, name := range []string{"text", "control", "half"} {
			want, err := os.ReadFile(filepath.Join(b.workspace, "data", name))
			if err != nil {
				t.Fatal(err)
			}
			if name == "control" && length != nil {
				continue
			}
			var got []byte
			for {
				a := b.do(params{"folder": "data", "op": "read", "path": name, "offset": len(got), "length": length})
				piece := []byte(a["text"].(string))
				if a["encoding"] == "base64" {
					piece, _ = base64.StdEncoding.DecodeString(string(piece))
				} else if name == "half" && length == nil {
					t.Errorf("half a character came as text")
				}
				if a["size"] != float64(len(want)) {
					t.Fatalf("size %v", a["size"])
				}
				got = append(got, piece...)
				if a["truncated"] == false {
					break
				}
				if len(piece) == 0 {
					t.Fatal("an empty piece that is not the last")
				}
			}
			if string(got) != string(want) {
				t.Errorf("%s in pieces of %v: %d bytes, want %d", name, length, len(got), len(want))
			}
		}
	}
	if a := b.do(params{"folder": "data", "op": "read", "path": "text", "offset": 1 << 50}); a["text"] != "" || a["truncated"] != false {
		t.Errorf("behind the end: %v", a)
	}
	if a := b.do(params{"folder": "data", "op": "read", "path": "text", "length": 0}); a["text"] != "" || a["truncated"] != true {
		t.Errorf("nothing of it: %v", a)
	}
}

func TestLists(t *testing.T) {
	b := newBench(t)
	var want []string
	for i := range 2345 {
		name := fmt.Sprintf("f%04d%s", i, strings.Repeat("x", 200))
		want = append(want, name)
		b.put("data/"+name, "")
	}
	b.put("data/.sentinel-ABC.tmp", "left behind")
	var got []string
	for pages := 1; ; pages++ {
		a := b.do(params{"folder": "data", "op": "list", "offset": len(got)})
		for _, e := range a["entries"].([]any) {
			got = append(got, e.(map[string]any)["name"].(string))
		}
		if a["truncated"] == false {
			break
		}
		if pages > 10 {
			t.Fatal("no end")
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRefusals(t *testing.T) {
	b := newBench(t, "host-state", "plugins", "data/key")
	b.put("data/key", "a secret's file")
	b.put("data/f", "x")
	b.put("docs/f", "x")
	b.put("plain", "x")
	b.put("host-state/token", "token-of-the-host")
	b.put(".git/hooks/pre-commit", "x")
	for name, p := range map[string]params{
		"not granted|denied|not granted":               {"folder": "etc", "op": "read", "path": "passwd"},
		"no word|denied|not granted":                   {"op": "read", "path": "f"},
		"the word with rw|denied|not granted":          {"folder": "data:rw", "op": "read", "path": "f"},
		"read only|denied|granted for reading":         {"folder": "docs", "op": "write", "path": "f", "text": "y"},
		"read only, remove|denied|:rw":                 {"folder": "docs", "op": "remove", "path": "f"},
		"no op|bad_fields|none of":                     {"folder": "data"},
		"odd op|bad_fields|none of":                    {"folder": "data", "op": "chmod", "path": "f"},
		"up|denied|outside":                            {"folder": "data", "op": "read", "path": "../plain"},
		"up and down|denied|outside":                   {"folder": "data", "op": "read", "path": "x/../f"},
		"absolute|denied|outside":                      {"folder": "data", "op": "read", "path": "/etc/passwd"},
		"zero byte|bad_fields|zero byte":               {"folder": "data", "op": "read", "path": "f\x00g"},
		"dot|bad_fields|single slashes":                {"folder": "data", "op": "read", "path": "./f"},
		"two slashes|bad_fields|single slashes":        {"folder": "data", "op": "read", "path": "a//f"},
		"slash at the end|bad_fields|single slashes":   {"folder": "data", "op": "write", "path": "a/", "text": ""},
		"long path|bad_fields|4096":                    {"folder": "data", "op": "read", "path": strings.Repeat("a/", 2100) + "f"},
		"long name|bad_fields|":                        {"folder": "data", "op": "write", "path": strings.Repeat("a", 300), "text": ""},
		"no file|not_found|no such file":               {"folder": "data", "op": "read", "path": "g"},
		"file as folder|not_found|not a folder":        {"folder": "data", "op": "read", "path": "f/g"},
		"folder as file|bad_fields|is a folder":        {"folder": "data", "op": "read"},
		"write a folder|bad_fields|is a folder":        {"folder": "data", "op": "write", "text": "x"},
		"list a file|bad_fields|not a folder":          {"folder": "data", "op": "list", "path": "f"},
		"remove the folder|denied|the folder itself":   {"folder": "data", "op": "remove"},
		"no text|bad_fields|is missing":                {"folder": "data", "op": "write", "path": "f"},
		"bad base64|bad_fields|not base64":             {"folder": "data", "op": "write", "path": "f", "text": "a", "encoding": "base64"},
		"odd encoding|bad_fields|want base64":          {"folder": "data", "op": "write", "path": "f", "text": "a", "encoding": "hex"},
		"text to read|bad_fields|no meaning":           {"folder": "data", "op": "read", "path": "f", "text": "a"},
		"negative offset|bad_fields|from 0":            {"folder": "data", "op": "read", "path": "f", "offset": -1},
		"half a length|bad_fields|an integer":          {"folder": "data", "op": "read", "path": "f", "length": 1.5},
		"unknown field|bad_fields|unknown field":       {"folder": "data", "op": "read", "path": "f", "mode": 7},
		"case|bad_fields|unknown field":                {"folder": "data", "op": "read", "Path": "f"},
		"too large|limit|256 KiB":                      {"folder": "data", "op": "write", "path": "f", "text": strings.Repeat("x", 256<<10)},
		"missing folder|not_found|not found":           {"folder": "none", "op": "list"},
		"missing absolute|not_found|not found":         {"folder": "nowhere", "op": "read", "path": "f"},
		"folder above|denied|plugins may not use":      {"folder": "out", "op": "list"},
		"file for a folder|not_found|not a folder":     {"folder": "file", "op": "list"},
		"hooks|denied|steer":                           {"folder": "all", "op": "write", "path": ".git/hooks/pre-commit", "text": "x"},
		"new hooks|denied|steer":                       {"folder": "all", "op": "write", "path": "sub/.git/config", "text": "x"},
		"grants|denied|steer":                          {"folder": "all", "op": "write", "path": ".sentinel/plugins/grants.json", "text": "x"},
		"grants in capitals|denied|steer":              {"folder": "all", "op": "write", "path": ".Sentinel/plugins/grants.json", "text": "x"},
		"environment|denied|steer":                     {"folder": "data", "op": "write", "path": ".envrc", "text": "x"},
		"remove hooks|denied|steer":                    {"folder": "all", "op": "remove", "path": ".git/hooks/pre-commit"},
		"the host's own|denied|belongs to the host":    {"folder": "all", "op": "read", "path": "host-state/token"},
		"a file of its own|denied|belongs to the host": {"folder": "data", "op": "read", "path": "key"},
		"its list|denied|belongs to the host":          {"folder": "all", "op": "list", "path": "host-state"},
		"its stat|denied|belongs to the host":          {"folder": "all", "op": "stat", "path": "host-state/token"},
		"what is not there yet|denied|steer":           {"folder": "all", "op": "write", "path": "plugins/evil.wasm", "text": "x"},
		"nor its folder|denied|steer":                  {"folder": "all", "op": "write", "path": "plugins/a/b", "text": "x"},
		"the folder itself as a file|denied|steer":     {"folder": "all", "op": "write", "path": "plugins", "text": "x"},
	} {
		t.Run(name, func(t *testing.T) {
			inner := *b
			inner.t = t
			parts := strings.Split(name, "|")
			inner.deny(p, abi.Code(parts[1]), parts[2])
		})
	}
	for name, want := range map[string]string{"data/f": "x", "docs/f": "x", ".git/hooks/pre-commit": "x"} {
		if got, err := os.ReadFile(filepath.Join(b.workspace, name)); err != nil || string(got) != want {
			t.Errorf("%s is now %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"plugins", ".sentinel", ".Sentinel", "sub"} {
		if _, err := os.Lstat(filepath.Join(b.workspace, name)); err == nil {
			t.Errorf("%s was made", name)
		}
	}
	for _, text := range []string{"", "null", "[]", "{", `{"folder":"data","folder":"docs","op":"list"}`, `{"folder":1}`, `{"path":1}`} {
		call := b.call
		call.Request = json.RawMessage(text)
		if _, err := b.access.Do(t.Context(), call); abi.CodeOf(err) != abi.BadFields {
			t.Errorf("%q: %v", text, err)
		}
	}
	ended, cancel := context.WithCancelCause(t.Context())
	over := errors.New("over")
	cancel(over)
	call := b.call
	call.Request = json.RawMessage(`{"folder":"data","op":"write","path":"late","text":"x"}`)
	if _, err := b.access.Do(ended, call); abi.CodeOf(err) != abi.Cancelled || !errors.Is(err, over) {
		t.Errorf("after the end: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(b.workspace, "data/late")); err == nil {
		t.Error("written after the end")
	}
}

// TestShutFolders grants folders inside of the host's own.
func TestShutFolders(t *testing.T) {
	state := t.TempDir()
	if err := os.MkdirAll(filepath.Join(state, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, state)
	b.put(".sentinel/state/token", "x")
	b.put(".sentinel/x/f", "x")
	b.call.Folders = map[string]files.Folder{
		"a": {Path: state, Write: true}, "b": {Path: filepath.Join(state, "sub"), Write: true}, "c": {Path: filepath.Join(b.workspace, ".sentinel/state")},
		"d": {Path: ".sentinel/state"}, "e": {Path: filepath.Join(b.workspace, ".sentinel/x"), Write: true},
	}
	for _, word := range []string{"a", "b", "c", "d"} {
		b.deny(params{"folder": word, "op": "list"}, abi.Denied, "belongs to the host")
	}
	b.deny(params{"folder": "e", "op": "write", "path": "f", "text": "y"}, abi.Denied, "steer")
	b.do(params{"folder": "e", "op": "read", "path": "f"})
}

// FuzzRequest holds that what is let through names something in the folder.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"folder":"data","op":"write","path":"a/b","text":"YQ==","encoding":"base64"}`))
	f.Add([]byte(`{"folder":"data","op":"read","path":"../../x","offset":1,"length":2}`))
	f.Add([]byte(`{"op":"list","path":"a//b"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		path, err := files.Decode(raw)
		if err != nil {
			if abi.As(err) == nil {
				t.Fatalf("an error without a code: %v", err)
			}
			return
		}
		if path == "" || !filepath.IsLocal(path) || strings.Contains(path, "..") && strings.Contains("/"+path+"/", "/../") {
			t.Fatalf("%q led to %q", raw, path)
		}
	})
}
