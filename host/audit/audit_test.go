package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sentinel-runtime/sentinel/host/audit"
)

func entry(event string) audit.Entry {
	return audit.Entry{Level: "info", Category: audit.Action, Event: event, Actor: "user", Outcome: "ok", Details: json.RawMessage(`{"a":"secret"}`)}
}

// TestLog writes from several goroutines, and reads with filters, across a rotated file and
// half a line that a crash left.
// read returns the entries of a page and the number of lines that are none.
func read(ctx context.Context, state string, q audit.Query) ([]audit.Entry, int, error) {
	page, err := audit.Read(ctx, state, q)
	return page.Entries, page.Damaged, err
}

func TestLog(t *testing.T) {
	state := t.TempDir()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	log := audit.New(state, audit.Options{
		Redact: func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("secret"), []byte("***")) },
		Now:    func() time.Time { return now },
	})
	old := entry("old/one")
	old.Error = "no secret here"
	log.Write(old)
	path := filepath.Join(state, audit.Name)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, path+".20260102T030406.000000000"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(`{"timestamp":"2026-01-02T`+"\n\n[]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	log = audit.New(state, audit.Options{Now: func() time.Time { return now }, Redact: func(b []byte) []byte { return b }})
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			e := entry(fmt.Sprintf("ticket/n%d", i))
			if i == 7 {
				e.Actor, e.Details = "agent:ci", json.RawMessage(`"`+strings.Repeat("é", 5000)+`"`)
			}
			log.Write(e)
		})
	}
	wg.Wait()
	all, damaged, err := read(context.Background(), state, audit.Query{})
	if err != nil || len(all) != 21 || damaged != 2 || all[20].Event != "old/one" || string(all[20].Details) != `{"a":"***"}` || all[20].Error != "no *** here" {
		t.Errorf("%d entries, %d damaged, %v: %+v", len(all), damaged, err, all)
	}
	for name, c := range map[string]struct {
		q    audit.Query
		want int
	}{
		"since": {audit.Query{Since: now}, 20}, "actor": {audit.Query{Actor: "agent:ci"}, 1}, "event": {audit.Query{Event: "old/*"}, 1},
		"limit": {audit.Query{Limit: 5}, 5}, "none": {audit.Query{Event: "ticket/x"}, 0}, "over files": {audit.Query{Limit: 21}, 21},
	} {
		if got, _, err := read(context.Background(), state, c.q); err != nil || len(got) != c.want {
			t.Errorf("%s: %d entries, %v", name, len(got), err)
		}
	}
	cut, _, _ := read(context.Background(), state, audit.Query{Actor: "agent:ci"})
	var text string
	if err := json.Unmarshal(cut[0].Details, &text); err != nil || len(text) > 2100 || !strings.HasSuffix(text, "...") {
		t.Errorf("long details: %d bytes, %v", len(text), err)
	}
	if _, _, err := read(context.Background(), state, audit.Query{Event: "["}); err == nil {
		t.Error("a bad pattern is accepted")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if list, _, err := read(context.Background(), t.TempDir(), audit.Query{}); err != nil || len(list) != 0 {
		t.Errorf("no log: %v, %v", list, err)
	}
}

// TestLogThatCannotBeWritten: an entry that is lost is counted and said once, and nothing
// else happens.
func TestLogThatCannotBeWritten(t *testing.T) {
	state := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(state, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	log := audit.New(state, audit.Options{Logger: slog.New(slog.NewTextHandler(&said, nil))})
	for range 3 {
		log.Write(entry("a/b"))
	}
	if log.Failed() != 3 || strings.Count(said.String(), "cannot be written") != 1 {
		t.Errorf("%d failed: %s", log.Failed(), said.String())
	}
}

// TestFailuresDoNotFillTheLog: what a client without rights repeats is one entry and, after
// a while, their number; a client that varies it fills the log no faster. What others did is
// still there.
func TestFailuresDoNotFillTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := t.TempDir()
		log := audit.New(state, audit.Options{})
		log.Write(entry("evidence"))
		denied := func(actor, event string) {
			log.WriteFailure(audit.Entry{Level: "warn", Category: audit.Security, Event: event, Actor: actor, Outcome: "denied", PID: 7, Program: "sh", Details: json.RawMessage(`{"a":"` + strings.Repeat("x", 3000) + `"}`)})
		}
		for range 65_000 {
			denied("agent:ci", "ticket/decide")
		}
		denied("viewer:wall", "ticket/decide")
		list := func(event string) (all []string) {
			t.Helper()
			entries, damaged, err := read(context.Background(), state, audit.Query{Event: event, Limit: 1000})
			if err != nil || damaged > 0 {
				t.Fatal(damaged, err)
			}
			for _, e := range entries {
				all = append(all, fmt.Sprintf("%s %s %d %s %d", e.Actor, e.Outcome, e.PID, e.Program, e.Count))
			}
			return all
		}
		if got := list("ticket/decide"); !slices.Equal(got, []string{"viewer:wall denied 7 sh 0", "agent:ci denied 7 sh 0"}) {
			t.Errorf("at once: %q", got)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := list("ticket/decide"); !slices.Equal(got, []string{"agent:ci denied 7 sh 64999", "viewer:wall denied 7 sh 0", "agent:ci denied 7 sh 0"}) {
			t.Errorf("later: %q", got)
		}
		for i := range 1000 {
			denied("agent:ci", fmt.Sprintf("some/event%d", i))
			denied(fmt.Sprintf("step of s%d", i), "other/event")
		}
		denied("viewer:wall", "ticket/decide") // who varies its failures hides those of no other
		if got := list("ticket/decide"); got[0] != "viewer:wall denied 7 sh 0" {
			t.Errorf("of another actor: %q", got)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		if some, other := list("some/*"), list("other/event"); len(some) != 100 || len(other) != 100 {
			t.Errorf("%d entries of 1000 events, %d of 1000 actors", len(some), len(other))
		}
		rest := list("other")
		slices.Sort(rest)
		if want := []string{"agent:ci several 0  0", "agent:ci several 0  899", "runs several 0  0", "runs several 0  899"}; !slices.Equal(rest, want) {
			t.Errorf("the rest: %q", rest)
		}
		if got := list("evidence"); len(got) != 1 {
			t.Errorf("the older entry: %q", got)
		}
		info, err := os.Stat(filepath.Join(state, audit.Name))
		if err != nil || info.Size() > 250<<10 {
			t.Errorf("%d bytes, %v", info.Size(), err)
		}
	})
}

// TestAgentsRemoveOnlyTheirOwn: 65,000 calls of agents with 100 names, which are 180 MB, leave all
// that others did: a person with more entries than any of them, an agent and a viewer that
// did less, and steps. Of a log that is full, the newest entries are those of all.
func TestAgentsRemoveOnlyTheirOwn(t *testing.T) {
	state := t.TempDir()
	log := audit.New(state, audit.Options{})
	others := []string{"user", "agent:other", "viewer:wall", "step of nightly"}
	for _, actor := range others {
		log.Write(audit.Entry{Level: "info", Event: "evidence", Actor: actor, Outcome: "ok"})
	}
	details, _ := json.Marshal(map[string]string{"text": strings.Repeat("x", 2000), "forged": `","actor":"user"`})
	write := func(actor string, i int) {
		log.Write(audit.Entry{Level: "info", Event: "ticket/create", Actor: actor, Outcome: "ok", Error: strings.Repeat("e", 490), Details: details, PID: i})
	}
	for i := range 1000 {
		write("user", i)
	}
	for i := range 65_000 {
		write(fmt.Sprintf("agent:a%d", i/650), i)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	list, damaged, err := read(context.Background(), state, audit.Query{Event: "evidence"})
	if err != nil || damaged != 0 || len(list) != len(others) {
		t.Errorf("%d entries of others are left, %d damaged, %v: %+v", len(list), damaged, err, list)
	}
	if list, _, err := read(context.Background(), state, audit.Query{Actor: "user", Limit: 2000}); err != nil || len(list) != 1001 {
		t.Errorf("%d entries of the person are left, %v", len(list), err)
	}
	newest, _, err := read(context.Background(), state, audit.Query{Actor: "agent:a99", Limit: 1})
	if err != nil || len(newest) != 1 || newest[0].PID != 64_999 {
		t.Errorf("the newest: %+v, %v", newest, err)
	}
	size := int64(0)
	files, _ := filepath.Glob(filepath.Join(state, audit.Name+"*"))
	for _, name := range files {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if size > 9*16<<20 || size < 7*16<<20 {
		t.Errorf("%d bytes in %d files", size, len(files))
	}
}

// TestReadEnds: reading ends with its caller, and a pattern that is matched with each entry is short.
func TestReadEnds(t *testing.T) {
	state := t.TempDir()
	log := audit.New(state, audit.Options{})
	log.Write(audit.Entry{Event: "a/b", Actor: "user"})
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := read(t.Context(), state, audit.Query{Event: strings.Repeat("*a", 1000)}); err == nil {
		t.Error("a pattern of 2,000 bytes is matched")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := read(ctx, state, audit.Query{}); !errors.Is(err, context.Canceled) {
		t.Errorf("read for a caller that has left: %v", err)
	}
}

// FuzzRead: whatever is in the file, reading ends without a panic, and what was read was
// written.
func FuzzRead(f *testing.F) {
	f.Add([]byte("{}\n"), "")
	f.Add([]byte(`{"timestamp":"2026-01-02T03:04:05Z","event":"a/b"}`), "a/*")
	f.Add([]byte("\x00\n[1]\n{"), "[")
	f.Fuzz(func(t *testing.T, text []byte, event string) {
		state := t.TempDir()
		path := filepath.Join(state, audit.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		list, damaged, _ := read(context.Background(), state, audit.Query{Event: event, Limit: 3})
		if lines := bytes.Count(text, []byte("\n")) + 1; len(list) > 3 || damaged+len(list) > lines {
			t.Errorf("%d entries, %d damaged of %d lines", len(list), damaged, lines)
		}
	})
}
