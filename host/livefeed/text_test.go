package livefeed_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/livefeed"
	"github.com/sentinel-runtime/sentinel/runtime"
)

func textOf(run, path, text string) runtime.Progress {
	p := step(run, run, "text")
	p.Path, p.Message = path, text
	return p
}

// messages shortens entries of one run to "path kind message".
func messages(t *testing.T, s *livefeed.Subscription) (out []string) {
	for _, e := range rest(t, s) {
		if strings.HasPrefix(e, "gap") {
			out = append(out, e)
			continue
		}
		var p runtime.Progress
		if err := json.Unmarshal([]byte(e[strings.Index(e, "{"):]), &p); err != nil {
			t.Fatal(err)
		}
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s", p.Path, p.Event, p.Message)))
	}
	return out
}

func TestTextIsGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := livefeed.New(livefeed.Options{})
		defer f.Close()
		s, err := f.Subscribe("", []string{"run:a"})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		expect := func(what string, want ...string) {
			t.Helper()
			synctest.Wait()
			if diff := cmp.Diff(want, messages(t, s)); diff != "" {
				t.Errorf("%s: %s", what, diff)
			}
		}
		f.Progress(textOf("a", "0", "He"))
		expect("the first piece comes at once", "0 text He")
		f.Progress(textOf("a", "0", "llo"))
		f.Progress(textOf("a", "0", ", "))
		f.Progress(textOf("a", "1", "other"))
		expect("the rest waits, another step's does not", "1 text other")
		time.Sleep(101 * time.Millisecond)
		expect("until its time", "0 text llo,")
		f.Progress(textOf("a", "0", "world"))
		f.Progress(textOf("a", "1", "!"))
		end := step("a", "a", "call.end")
		f.Progress(end)
		expect("or until its step goes on; 1 was silent so long that it begins again", "1 text !", "0 text world", "0 call.end")
		f.Progress(textOf("a", "1", "?"))
		status := step("a", "a", "status")
		status.Path = ""
		f.Progress(status)
		expect("or the run does", "1 text ?", "status")
		f.Progress(textOf("a", "0", "x"))
		f.Progress(textOf("a", "0", strings.Repeat("y", 5000)))
		expect("or there is much of it", "0 text x", "0 text "+strings.Repeat("y", 5000))
		f.Progress(textOf("a", "0", "z"))
		f.Close()
		expect("nothing is lost at the end", "0 text z")
	})
}

// TestTextGoesFirst has a model that talks more than the ring can hold. What
// steps report stays; for the text, readers get a count of what was dropped.
func TestTextGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := livefeed.New(livefeed.Options{Entries: 40})
		defer f.Close()
		s, err := f.Subscribe("", []string{"run:a"})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for i := range 20 {
			p := step("a", "a", "step.end")
			p.Message = fmt.Sprint(i)
			f.Progress(p)
			for range 2 {
				f.Progress(textOf("a", "1", "talk"))
				time.Sleep(time.Second) // ends the stream: the next piece is an entry at once
				synctest.Wait()
			}
		}
		// 60 entries, 40 of them text, of which a quarter of the room is sure: so
		// 20 had to go, and all of these were text.
		steps, text, lost := 0, 0, 0
		for _, m := range messages(t, s) {
			var n, of int
			switch {
			case strings.HasPrefix(m, "0 step.end"):
				steps++
			case strings.HasPrefix(m, "1 text"):
				text++
			default:
				if _, err := fmt.Sscanf(m, "gap %d (%d)", &n, &of); err != nil || n != of {
					t.Errorf("%q: %v", m, err)
				}
				lost += n
			}
		}
		if steps != 20 || text != 20 || lost != 20 {
			t.Errorf("%d steps, %d texts, %d lost", steps, text, lost)
		}
	})
}

// TestBytesAreBounded publishes far more than the ring may hold.
func TestBytesAreBounded(t *testing.T) {
	f := open(t, livefeed.Options{Bytes: 1 << 20})
	s := subscribe(t, f, "", "run:a")
	for i := range 3000 {
		p := step("a", "a", "step.end")
		p.Output = json.RawMessage(`"` + strings.Repeat("y", i*7) + `"`)
		f.Progress(p)
		p.Event, p.Message = runtime.OnText, strings.Repeat("t", 2000)
		f.Progress(p)
		if st := f.Stats(); st.Bytes > 1<<20 || i > 10 && st.Entries < 10 {
			t.Fatalf("%+v after %d", st, i)
		}
	}
	got := rest(t, s)
	for _, e := range got {
		if strings.HasPrefix(e, "gap") && strings.HasSuffix(e, "~") {
			t.Error(e)
		}
	}
	if len(got) < 10 {
		t.Errorf("%d entries", len(got))
	}
}
