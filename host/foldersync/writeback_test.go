package foldersync_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/foldersync"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// saved makes a revision in the store alone.
func (s *fixture) saved(id sentinels.ID, about string) runtime.Stored {
	s.t.Helper()
	stored, err := s.rt.Edit(s.t.Context(), id, runtime.SaveOptions{Expect: runtime.AnyRevision, By: "user"}, func(d *sentinels.Definition) (*sentinels.Definition, error) {
		next := *d
		next.Description = about
		return &next, nil
	})
	s.must(err)
	return stored
}

// edit edits a definition as a command does.
func (s *fixture) edit(id sentinels.ID, about string) {
	s.t.Helper()
	s.must(s.r.Sync(s.t.Context(), id))
	s.must(s.r.WriteBack(s.t.Context(), s.saved(id, about)))
}

// TestWriteBack: an edit reaches the file, keeps its comments, and does not come
// back as a revision.
func TestWriteBack(t *testing.T) {
	s := newScene(t).begin()
	s.write("sentinels/a.json", definition("a", "1"))
	s.live("sentinels/a.json", "a", 1)
	s.edit("a", "2")
	if got := s.text("sentinels/a.json"); !strings.Contains(got, `"description":"2"`) || !strings.HasPrefix(got, "// the sentinel a\n") {
		t.Errorf("the file says %s", got)
	}
	s.live("sentinels/a.json", "a", 2)
	time.Sleep(100 * time.Millisecond) // ten looks at the folder
	s.live("sentinels/a.json", "a", 2)

	// Edits that come in another order than they were made.
	third := s.saved("a", "3")
	fourth := s.saved("a", "4")
	s.must(s.r.WriteBack(t.Context(), fourth))
	s.must(s.r.WriteBack(t.Context(), third))
	s.live("sentinels/a.json", "a", 4)
	if got := s.text("sentinels/a.json"); !strings.Contains(got, `"description":"4"`) {
		t.Errorf("the file says %s", got)
	}
	entries, err := os.ReadDir(s.path("sentinels"))
	if s.must(err); len(entries) != 1 {
		t.Errorf("%d files are in the folder, something was left", len(entries))
	}
	// A definition that lives in no file is none of its business.
	def, problems := s.rt.Decode([]byte(definition("free", "1")), "")
	s.must(problems.Err())
	free, err := s.rt.Save(t.Context(), def, 0)
	s.must(err)
	s.must(s.r.Sync(t.Context(), "free"))
	s.must(s.r.WriteBack(t.Context(), free))
	s.must(s.r.Sync(t.Context(), "unknown"))
}

// TestSyncBeforeAnEdit: the changed file is read first, so that an
// edit that was made on an older revision is refused.
func TestSyncBeforeAnEdit(t *testing.T) {
	s := newScene(t)
	s.write("sentinels/a.json", definition("a", "1"))
	s.beginWith(foldersync.Options{Watch: slow()})
	s.write("sentinels/a.json", definition("a", "2")) // the watcher does not know
	s.must(s.r.Sync(t.Context(), "a"))
	if got := s.revision("a"); got != 2 {
		t.Fatalf("after Sync the store has revision %d, want 2", got)
	}
	if _, err := s.rt.Edit(t.Context(), "a", runtime.SaveOptions{Expect: 1}, func(d *sentinels.Definition) (*sentinels.Definition, error) { return d, nil }); abi.CodeOf(err) != abi.Conflict {
		t.Errorf("a stale edit gave %v, want a conflict", err)
	}

	s.write("sentinels/a.json", `{"id":"a",`)
	if err := s.r.Sync(t.Context(), "a"); abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), "a.json") {
		t.Errorf("Sync of a broken file gave %v, want a conflict that names it", err)
	}

	// Changed between Sync and WriteBack: the file stays as it was edited.
	s.write("sentinels/a.json", definition("a", "3"))
	s.must(s.r.Sync(t.Context(), "a"))
	mine := s.saved("a", "mine")
	s.write("sentinels/a.json", definition("a", "theirs"))
	if err := s.r.WriteBack(t.Context(), mine); abi.CodeOf(err) != abi.Conflict {
		t.Errorf("WriteBack over a changed file gave %v, want a conflict", err)
	}
	if got := s.text("sentinels/a.json"); !strings.Contains(got, "theirs") {
		t.Errorf("the file says %s", got)
	}
	s.must(s.r.Sync(t.Context(), "a"))
	if got := s.revision("a"); got != mine.Revision+1 {
		t.Errorf("revision %d, want the file to be the one after %d", got, mine.Revision)
	}

	s.must(os.Remove(s.path("sentinels/a.json")))
	s.must(s.r.Sync(t.Context(), "a"))
	if _, err := s.rt.Definition("a"); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("the file is gone and the definition is not: %v", err)
	}
}

// TestDeletedElsewhere: the file of a definition that was deleted goes too.
func TestDeletedElsewhere(t *testing.T) {
	s := newScene(t).begin()
	s.write("sentinels/a.json", definition("a", "1"))
	s.live("sentinels/a.json", "a", 1)
	s.must(s.r.Sync(t.Context(), "a"))
	tombstone, err := s.rt.DeleteWith(t.Context(), "a", runtime.SaveOptions{Expect: 1, By: "user"})
	s.must(err)
	s.must(s.r.WriteBack(t.Context(), tombstone))
	if _, err := os.Stat(s.path("sentinels/a.json")); err == nil {
		t.Error("the file is still there")
	}
	time.Sleep(250 * time.Millisecond)
	if got := s.revision("a"); got != 0 {
		t.Errorf("the definition came back as revision %d", got)
	}
}

// TestCrashes stops between the writes of an edit, in each place, and starts
// again: file and store are the same, the newer one wins, nothing is lost.
func TestCrashes(t *testing.T) {
	for _, c := range []struct {
		name     string
		meantime func(s *fixture)
		about    string // what both say in the end, "" for both gone
		revision int
	}{
		{"nothing happened", func(*fixture) {}, "1", 1},
		{"stored, not written", func(s *fixture) { s.saved("a", "2") }, "2", 2},
		{"stored twice, not written", func(s *fixture) { s.saved("a", "2"); s.saved("a", "3") }, "3", 3},
		{"written, not marked", func(s *fixture) {
			s.saved("a", "2")
			s.write("sentinels/a.json", definition("a", "2"))
		}, "2", 2},
		{"stored, and the file changed", func(s *fixture) {
			s.saved("a", "2")
			s.write("sentinels/a.json", definition("a", "file"))
		}, "file", 3},
		{"the file changed", func(s *fixture) { s.write("sentinels/a.json", definition("a", "file")) }, "file", 2},
		{"the file was renamed", func(s *fixture) {
			s.must(os.Rename(s.path("sentinels/a.json"), s.path("sentinels/b.json")))
		}, "1", 1},
		{"the file is gone", func(s *fixture) { s.must(os.Remove(s.path("sentinels/a.json"))) }, "", 0},
		{"deleted, and the file is there", func(s *fixture) {
			_, err := s.rt.DeleteWith(context.Background(), "a", runtime.SaveOptions{Expect: 1, By: "user"})
			s.must(err)
		}, "", 0},
		{"deleted without its file, which was created again", func(s *fixture) {
			_, err := s.rt.DeleteWith(context.Background(), "a", runtime.SaveOptions{Expect: 1, By: "file"})
			s.must(err)
		}, "1", 3},
		{"a mark was cut short", func(s *fixture) {
			f, err := os.OpenFile(s.workspace+"/files.jsonl", os.O_APPEND|os.O_WRONLY, 0)
			s.must(err)
			_, err = f.WriteString(`{"file":"` + s.path("sentinels/a.json") + `","mark":{"id":"a","dig`)
			s.must(err)
			s.must(f.Close())
		}, "1", 1},
		{"the marks are gone", func(s *fixture) { s.must(os.Remove(s.workspace + "/files.jsonl")) }, "1", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t).begin()
			s.write("sentinels/a.json", definition("a", "1"))
			s.live("sentinels/a.json", "a", 1)
			s.stop()
			c.meantime(s)
			s.begin()
			if c.about == "" {
				s.deleted("a")
				if _, err := os.Stat(s.path("sentinels/a.json")); err == nil {
					t.Error("the file is still there")
				}
				return
			}
			name := "sentinels/a.json"
			if _, err := os.Stat(s.path(name)); err != nil {
				name = "sentinels/b.json"
			}
			s.live(name, "a", c.revision)
			stored, err := s.rt.Definition("a")
			s.must(err)
			want := `"description":"` + c.about + `"`
			if got := s.text(name); !strings.Contains(got, want) || !strings.Contains(string(stored.Definition), want) {
				t.Errorf("the file says %s, the store %s, want %s", got, stored.Definition, want)
			}
			// And it stays so.
			s.stop()
			s.begin()
			s.live(name, "a", c.revision)
		})
	}
}

// TestStartReadsNothingTwice: what is as it was is not decoded, unless the step
// types are other ones.
func TestStartReadsNothingTwice(t *testing.T) {
	s := newScene(t)
	for _, id := range []string{"a", "b", "c"} {
		s.write("sentinels/"+id+".json", definition(id, "1"))
	}
	s.begin()
	if got := s.defs.decodes.Load(); got != 3 {
		t.Errorf("the first start decoded %d files, want 3", got)
	}
	s.stop()
	s.write("sentinels/b.json", definition("b", "2"))
	s.begin()
	if got := s.defs.decodes.Load(); got != 1 {
		t.Errorf("the second start decoded %d files, want the one that changed", got)
	}
	s.live("sentinels/b.json", "b", 2)
	s.live("sentinels/a.json", "a", 1)
}

// TestRevisionsWithABoundAreNotWritten: a revision of a model or an agent stays out of the file,
// whatever happens to the file, until a person accepts it. What the file says has no bound.
func TestRevisionsWithABoundAreNotWritten(t *testing.T) {
	s := newScene(t).begin()
	const name = "sentinels/a.json"
	own := definition("a", "1")
	s.write(name, own)
	s.live(name, "a", 1)
	agent := func(about string) {
		t.Helper()
		s.must(s.r.Sync(t.Context(), "a"))
		opt := runtime.SaveOptions{Expect: runtime.AnyRevision, By: "agent:ci", Within: []string{"code/read"}}
		stored, err := s.rt.Edit(t.Context(), "a", opt, func(d *sentinels.Definition) (*sentinels.Definition, error) {
			next := *d
			next.Description = about
			return &next, nil
		})
		s.must(err)
		s.must(s.r.WriteBack(t.Context(), stored))
	}
	head := func(when string, revision int, bounded bool) {
		t.Helper()
		time.Sleep(100 * time.Millisecond) // ten looks at the folder
		got, err := s.rt.Definition("a")
		s.must(err)
		if got.Revision != revision || (got.Within != nil) != bounded {
			t.Errorf("%s: revision %d with the bound %q, want %d, %t", when, got.Revision, got.Within, revision, bounded)
		}
		if text := s.text(name); strings.Contains(text, "agent") {
			t.Errorf("%s: the file says %s", when, text)
		}
	}
	agent("agent 2")
	head("edited", 2, true)
	s.write(name, own+"\n")
	head("a line end more", 2, true)
	s.stop()
	s.begin()
	head("started again", 2, true)
	s.stop()
	s.write(name, own)
	s.begin()
	head("another line end at the start", 2, true)

	// What comes back after a deletion, as by git, is what the file said.
	tombstone, err := s.rt.DeleteWith(t.Context(), "a", runtime.SaveOptions{Expect: 2, By: "agent:ci"})
	s.must(err)
	s.must(s.r.WriteBack(t.Context(), tombstone))
	s.write(name, own)
	s.live(name, "a", 4)
	head("deleted and back", 4, false)

	// An edit of the file is of the user as a whole.
	agent("agent 5")
	s.write(name, definition("a", "mine"))
	s.live(name, "a", 6)
	head("the file was edited", 6, false)

	// An accepted revision is written.
	agent("agent 7")
	head("edited again", 7, true)
	opt := runtime.SaveOptions{Expect: 7, By: "user", Whole: true}
	stored, err := s.rt.Edit(t.Context(), "a", opt, func(d *sentinels.Definition) (*sentinels.Definition, error) { return d, nil })
	s.must(err)
	s.must(s.r.WriteBack(t.Context(), stored))
	s.live(name, "a", 8)
	if text := s.text(name); !strings.Contains(text, "agent 7") {
		t.Errorf("accepted: the file says %s", text)
	}
}
