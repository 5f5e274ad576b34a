//go:build unix

package shell_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/command/shell"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// logFile is a file that grows, in a bench.
type logFile struct {
	*bench
	name string
	rule string // rules and until of the request
}

func (l *logFile) path() string { return filepath.Join(l.dir, l.name) }

func (l *logFile) write(text string) {
	l.t.Helper()
	f, err := os.OpenFile(l.path(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		l.t.Error(err)
	}
}

func (l *logFile) rotate() {
	l.t.Helper()
	if err := os.Rename(l.path(), l.path()+".1"); err != nil {
		l.t.Error(err)
	}
}

func (l *logFile) request(from string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"file":%q,"from":%q,"timeoutMs":1%s}`, l.name, from, l.rule))
}

func (l *logFile) start(from string) string {
	l.t.Helper()
	position, err := l.m.FileStart(shell.FileWatch{Workspace: l.dir, Request: l.request(from)})
	if err != nil {
		l.t.Fatal(err)
	}
	return position
}

// watch watches from a position until due is closed.
func (l *logFile) watch(from string, due <-chan struct{}) shell.FileAnswer {
	l.t.Helper()
	raw, err := l.m.WatchFile(l.t.Context(), shell.FileWatch{Workspace: l.dir, Request: l.request(from), Position: from, Due: due})
	if err != nil {
		l.t.Fatal(err)
	}
	var a shell.FileAnswer
	if err := json.Unmarshal(raw, &a); err != nil {
		l.t.Fatal(err)
	}
	return a
}

// over is the time limit of a watch whose time is over.
func over() <-chan struct{} {
	due := make(chan struct{})
	close(due)
	return due
}

func newLog(t *testing.T) *logFile { return &logFile{newBench(t, shell.Options{}), "app.log", ""} }

// Specification: "a file that grows (rotation, truncation, partial lines, confined to the
// workspace, journaled by offset so that replay agrees)". The position is taken before the
// changes; a watch that a crash interrupts begins there again.
func TestWatchFileReadsWhatHappenedBehindAPosition(t *testing.T) {
	const replaced = "info [the file was replaced: reading the new one]"
	for _, tt := range []struct {
		name   string
		before string
		change func(l *logFile)
		want   []string
	}{
		{"lines", "old\n", func(l *logFile) { l.write("a\nb\r\n") }, []string{"info a", "info b"}},
		{"a partial line is no line", "old\n", func(l *logFile) { l.write("a\nhalf") }, []string{"info a"}},
		{"the rest of a partial line", "old\nha", func(l *logFile) { l.write("lf\n") }, []string{"info half"}},
		{"not there yet", "", func(l *logFile) { l.write("first\n") }, []string{"info first"}},
		{"rotated", "old\n", func(l *logFile) { l.write("a\n"); l.rotate(); l.write("b\n") }, []string{"info a", replaced, "info b"}},
		{"rotated in a partial line", "old\n", func(l *logFile) { l.write("a"); l.rotate(); l.write("b\n") }, []string{"info a", replaced, "info b"}},
		{"rotated, no new one yet", "old\n", func(l *logFile) { l.write("a\n"); l.rotate() }, []string{"info a"}},
		{"became shorter", "old and long\n", func(l *logFile) {
			if err := os.Truncate(l.path(), 0); err != nil {
				l.t.Error(err)
			}
			l.write("new\n")
		}, []string{"info [the file became shorter: reading it from its beginning]", "info new"}},
		{"removed", "old\n", func(l *logFile) {
			// The next file must not have the identity of the removed one.
			if err := errors.Join(os.WriteFile(l.path()+".new", []byte("b\n"), 0o600), os.Rename(l.path()+".new", l.path())); err != nil {
				l.t.Error(err)
			}
		}, []string{"info [the file was replaced or removed before it was read to its end: lines may be missing]", "info b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLog(t)
			if tt.before != "" {
				l.write(tt.before)
			}
			from := l.start("end")
			tt.change(l)
			first, again := l.watch(from, over()), l.watch(from, over())
			if diff := cmp.Diff(tt.want, texts(first.Lines)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(texts(first.Lines), texts(again.Lines)); diff != "" || first.Position != again.Position || first.From != from {
				t.Errorf("again, from %s to %s and %s (-first +again):\n%s", first.From, first.Position, again.Position, diff)
			}
			if first.Finished || !first.TimedOut {
				t.Errorf("finished %v, timed out %v", first.Finished, first.TimedOut)
			}
		})
	}
}

// A watch from the position of the one before misses nothing and repeats nothing.
func TestWatchFileGoesOn(t *testing.T) {
	l := newLog(t)
	l.rule = `,"until":"match","rules":[{"pattern":"stop","classification":"success"}]`
	l.write("a\nstop 1\nb\nstop 2\nha")
	var got []string
	at := l.start("start")
	for range 3 {
		a := l.watch(at, over())
		got, at = append(got, texts(a.Lines)...), a.Position
		got = append(got, fmt.Sprint(a.Finished, a.TimedOut))
	}
	l.rotate()
	l.write("c\n")
	got = append(got, texts(l.watch(at, over()).Lines)...)
	want := []string{"verbose a", "success stop 1", "true false", "verbose b", "success stop 2", "true false", "false true",
		"verbose ha", "info [the file was replaced: reading the new one]", "verbose c"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The watch and the writer run at the same time, so that the file is replaced before or
// after the watch has opened it.
func TestWatchFileWhileItGrows(t *testing.T) {
	l := newLog(t)
	l.rule = `,"until":"error","rules":[{"pattern":"^bad","classification":"error"},{"pattern":"noise","classification":"verbose","action":"Suppress"}]`
	l.write("old\n")
	from := l.start("end")
	done := make(chan shell.FileAnswer)
	go func() { done <- l.watch(from, nil) }()
	l.write("one\nnoise\ntw")
	l.write("o\n")
	l.rotate()
	l.write("three\nbad luck\nlater\n")
	a := <-done
	want := []string{"verbose one", "verbose two", "info [the file was replaced: reading the new one]", "verbose three", "error bad luck"}
	if diff := cmp.Diff(want, texts(a.Lines)); diff != "" || !a.Finished || a.TimedOut {
		t.Errorf("finished %v (-want +got):\n%s", a.Finished, diff)
	}
}

// A writer that never pauses does not prolong a watch whose time is over.
func TestWatchFileEndsWhileItIsFlooded(t *testing.T) {
	l := newLog(t)
	l.write("")
	from := l.start("end")
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for ctx.Err() == nil {
			l.write(strings.Repeat("0123456789\n", 1000))
		}
	}()
	a := l.watch(from, over())
	cancel()
	<-stopped
	b := l.watch(a.Position, over())
	info, err := os.Stat(l.path())
	if err != nil {
		t.Fatal(err)
	}
	all := len(a.Lines) + a.Dropped + len(b.Lines) + b.Dropped
	if want := int(info.Size() / 11); all != want || !strings.HasPrefix(b.Position, fmt.Sprint(info.Size(), "@")) {
		t.Errorf("the answers account for %d lines of %d, to %s of %d", all, want, b.Position, info.Size())
	}
	if raw, _ := json.Marshal(b); len(raw) > 256<<10 {
		t.Errorf("an answer of %d bytes", len(raw))
	}
}

func TestWatchFileIsConfined(t *testing.T) {
	l := newLog(t)
	outside := filepath.Join(t.TempDir(), "secret.log")
	if err := errors.Join(os.WriteFile(outside, []byte("secret\n"), 0o600), os.Symlink(outside, filepath.Join(l.dir, "link.log")),
		os.Mkdir(filepath.Join(l.dir, "folder"), 0o700), os.Symlink("app.log", filepath.Join(l.dir, "inside.log"))); err != nil {
		t.Fatal(err)
	}
	for name, code := range map[string]abi.Code{
		"link.log": abi.Denied, "../secret.log": abi.Denied, outside: abi.Denied, "folder": abi.BadFields, "inside.log": "", "none/x.log": "",
	} {
		request := json.RawMessage(fmt.Sprintf(`{"file":%q,"timeoutMs":1}`, name))
		_, start := l.m.FileStart(shell.FileWatch{Workspace: l.dir, Request: request})
		_, err := l.m.WatchFile(t.Context(), shell.FileWatch{Workspace: l.dir, Request: request, Position: "0@", Due: over()})
		if abi.CodeOf(start) != code || abi.CodeOf(err) != code {
			t.Errorf("%s: %v and %v, want %s", name, start, err, code)
		}
	}
	// A file that becomes a link to the outside while it is watched.
	l.write("a\n")
	from := l.start("start")
	l.rotate()
	if err := os.Symlink(outside, l.path()); err != nil {
		t.Fatal(err)
	}
	_, err := l.m.WatchFile(t.Context(), shell.FileWatch{Workspace: l.dir, Request: l.request(from), Position: from, Due: over()})
	if abi.CodeOf(err) != abi.Denied {
		t.Errorf("a link to the outside in place of the file: %v", err)
	}
}

// Files and lines that a model must not read are refused, by the name behind links.
func TestWatchFileOfAModel(t *testing.T) {
	l := newLog(t)
	l.write("-----BEGIN PRIVATE KEY-----\nx\n")
	if err := errors.Join(os.WriteFile(filepath.Join(l.dir, "other"), nil, 0o600), os.Symlink("other", filepath.Join(l.dir, "link"))); err != nil {
		t.Fatal(err)
	}
	refuse := &abi.Error{Code: abi.Denied, Message: "no"}
	mayRead := func(name string, line []byte) error {
		if name == "other" || strings.HasPrefix(string(line), "-----BEGIN PRIVATE KEY-----\n") {
			return refuse
		}
		return nil
	}
	for _, name := range []string{"link", "app.log"} {
		w := shell.FileWatch{Workspace: l.dir, Request: json.RawMessage(`{"file":"` + name + `","timeoutMs":1}`), Position: "0@", Due: over(), MayRead: mayRead}
		if _, err := l.m.WatchFile(t.Context(), w); !errors.Is(err, refuse) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWatchFileRequests(t *testing.T) {
	l := newLog(t)
	for _, request := range []string{
		`{"file":"","timeoutMs":1}`, `{"file":"a"}`, `{"file":"a","until":"finished"}`, `{"file":"a","until":"error"}`, `{"file":"a","timeoutMs":1,"from":"begin"}`,
		`{"file":"a","timeoutMs":1,"from":"-1@"}`, `{"file":"a","timeoutMs":1,"rules":[{"pattern":"("}]}`, `{"file":"a","timeoutMs":1,"extra":1}`, `[`,
	} {
		w := shell.FileWatch{Workspace: l.dir, Request: json.RawMessage(request), Position: "0@", Due: over()}
		_, start := l.m.FileStart(w)
		_, err := l.m.WatchFile(t.Context(), w)
		if abi.CodeOf(start) != abi.BadFields || abi.CodeOf(err) != abi.BadFields {
			t.Errorf("%s: %v and %v", request, start, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.m.WatchFile(ctx, shell.FileWatch{Workspace: l.dir, Request: l.request("end"), Position: "0@", Due: ctx.Done()}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
