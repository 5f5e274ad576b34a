package cassette_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/llm/cassette"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

func TestTheFileIsPrivateAndNotReplacedUnasked(t *testing.T) {
	file := record(t, echo{}, cassette.RecordOptions{}, ask("one"))
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %v, %v", info.Mode(), err)
	}
	_, err = cassette.Record(file, echo{}, cassette.RecordOptions{})
	if e := abi.As(err); e == nil || e.Code != abi.Conflict {
		t.Errorf("got %v", err)
	}
	r, err := cassette.Record(file, echo{}, cassette.RecordOptions{Overwrite: true})
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	if n := play(t, file, cassette.PlayOptions{}).Len(); n != 0 {
		t.Errorf("%d turns are left", n)
	}
}

// TestEveryPrefixOfAFileCanBeRead stands for a process killed at any byte.
func TestEveryPrefixOfAFileCanBeRead(t *testing.T) {
	raw, err := os.ReadFile(record(t, echo{}, cassette.RecordOptions{}, ask("one"), ask("two"), ask("three")))
	if err != nil {
		t.Fatal(err)
	}
	head := bytes.IndexByte(raw, '\n') + 1
	file := filepath.Join(t.TempDir(), "cut.jsonl")
	for size := head; size <= len(raw); size++ {
		p, err := cassette.Read(file, bytes.NewReader(raw[:size]), cassette.PlayOptions{})
		if err != nil {
			t.Fatalf("%d of %d bytes: %v", size, len(raw), err)
		}
		whole := bytes.Count(raw[head:size], []byte("\n"))
		if p.Len() != whole || p.Torn() != (raw[size-1] != '\n') {
			t.Fatalf("%d bytes: %d turns, torn %v", size, p.Len(), p.Torn())
		}
		if size%97 != 0 && size != len(raw)-1 {
			continue // recording on is the slower half
		}
		if err := os.WriteFile(file, raw[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := cassette.Record(file, echo{}, cassette.RecordOptions{Append: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Turn(t.Context(), ask("more"), nil); err != nil {
			t.Fatal(err)
		}
		r.Close()
		if r.Torn() != (raw[size-1] != '\n') {
			t.Errorf("%d bytes: the recorder says torn %v", size, r.Torn())
		}
		if p = play(t, file, cassette.PlayOptions{}); p.Len() != whole+1 || p.Torn() {
			t.Fatalf("%d bytes, gone on: %d turns, torn %v", size, p.Len(), p.Torn())
		}
	}
}

func TestFilesThatAreNoCassettes(t *testing.T) {
	const head = `{"cassette":"sentinel","version":1}` + "\n"
	const turn = `{"n":1,"key":"k","request":{"messages":[]},"reply":{"text":"x","toolCalls":null,"finish":"stop","usage":{},"provider":"p","model":"m"},"ms":1}` + "\n"
	tests := map[string]struct{ text, says string }{
		"duplicate key":  {head + strings.Replace(turn, `"n":1`, `"n":1,"n":2`, 1), `line 2: column 8: n: duplicate key "n"`},
		"empty":          {"", "line 1: no header"},
		"no header":      {turn, "line 1: no header"},
		"later version":  {`{"cassette":"sentinel","version":2}` + "\n", "version 2, this program reads 1"},
		"no JSON":        {head + "x\n" + turn, "line 2:"},
		"unknown key":    {head + strings.Replace(turn, `"ms"`, `"sm"`, 1), "sm"},
		"neither answer": {head + `{"n":1,"key":"k","request":{"messages":[]},"ms":1}` + "\n", "either a reply or an error"},
	}
	for name, tt := range tests {
		_, err := cassette.Read("x", strings.NewReader(tt.text), cassette.PlayOptions{})
		if e := abi.As(err); e == nil || e.Code != abi.BadFields || !strings.Contains(e.Message, tt.says) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := cassette.Open(filepath.Join(t.TempDir(), "none"), cassette.PlayOptions{}); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("a missing file: %v", err)
	}
	p, err := cassette.Read("x", strings.NewReader(head+turn), cassette.PlayOptions{})
	if err != nil || p.Len() != 1 {
		t.Errorf("the good one: %v", err)
	}
}

func TestHideAndShow(t *testing.T) {
	const workspace = "/home/me/work"
	for in, want := range map[string]string{
		"/home/me/work": "$WORKSPACE",
		"in /home/me/work/a.go, in /home/me/work.": "in $WORKSPACE/a.go, in $WORKSPACE.",
		"/home/me/workshop":                        "/home/me/workshop",
		"/home/me/work.bak":                        "/home/me/work.bak",
		"/home/me/work/..":                         "$WORKSPACE/..",
		"/x/home/me/work":                          "/x/home/me/work",
		"echo $WORKSPACE $$WORKSPACE":              "echo $$WORKSPACE $$$$WORKSPACE",
		`"cwd":"/home/me/work"`:                    `"cwd":"$WORKSPACE"`,
	} {
		got := cassette.Hide(workspace, in)
		if got != want {
			t.Errorf("Hide(%q) is %q, want %q", in, got, want)
		}
		if back := cassette.Show(workspace, got); back != in {
			t.Errorf("%q comes back as %q", in, back)
		}
	}
	if got := cassette.Show("/other", cassette.Hide(workspace, "/home/me/work/a $WORKSPACE")); got != "/other/a $WORKSPACE" {
		t.Errorf("elsewhere it is %q", got)
	}
}

func TestKeys(t *testing.T) {
	base := conversation("x", "took 3s")
	if cassette.Key(base) != cassette.Key(conversation("x", "took 250 ms")) {
		t.Error("a duration changes the key")
	}
	one, two := conversation("x", `{"executionId":"cf45ae5f2efee0e9"}`), conversation("x", `{"executionId":"e7fcff77e23a6a99"}`)
	if cassette.Key(one) != cassette.Key(two) {
		t.Error("the id of an execution changes the key")
	}
	if cassette.Key(conversation("x", "cf45ae5f2efee0e9")) == cassette.Key(conversation("x", "e7fcff77e23a6a99")) {
		t.Error("any hexadecimal number is taken for the id of an execution")
	}
	for name, other := range map[string]func() string{
		"text":   func() string { return cassette.Key(conversation("y", "took 3s")) },
		"number": func() string { return cassette.Key(conversation("x", "took 3 tries")) },
		"model":  func() string { turn := conversation("x", "took 3s"); turn.Model = "m"; return cassette.Key(turn) },
		"limit":  func() string { turn := conversation("x", "took 3s"); turn.MaxTokens = 9; return cassette.Key(turn) },
		"tools":  func() string { turn := conversation("x", "took 3s"); turn.Tools = nil; return cassette.Key(turn) },
	} {
		if other() == cassette.Key(base) {
			t.Errorf("a different %s has the same key", name)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"cassette":"sentinel","version":1}` + "\n" + `{"n":1,"key":"k","request":{"messages":[{"role":"user","content":"x"}]},"error":{"code":"timeout","message":"late"},"ms":1}` + "\n{"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := cassette.Read("x", bytes.NewReader(raw), cassette.PlayOptions{Workspace: "/w"})
		if err != nil {
			if abi.As(err) == nil {
				t.Fatalf("%T is no *abi.Error", err)
			}
			return
		}
		for range p.Len() {
			reply, err := p.Turn(t.Context(), ask("anything"), nil)
			if err == nil && reply.ToolCalls == nil {
				t.Fatal("a reply without a list of calls")
			}
		}
		if len(p.Unused()) != 0 {
			t.Fatal("a turn was not used")
		}
	})
}

func FuzzHide(f *testing.F) {
	f.Add("/w/a $WORKSPACE $$WORKSPACE /w.x $/w")
	f.Fuzz(func(t *testing.T, text string) {
		if got := cassette.Show("/w", cassette.Hide("/w", text)); got != text {
			t.Fatalf("%q comes back as %q", text, got)
		}
	})
}
