package cassette

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// maxChanges bounds what is said of one divergence.
const maxChanges = 8

// A Divergence is a request that was not recorded as it came.
type Divergence struct {
	Call    int      // which request of the replay, from 1
	Entry   int      // the recorded turn that answered, 0 if none was left
	Changes []Change // the first few
}

// A Change is one field of a request that differs. Was and Now are JSON or
// text around the first difference, shortened.
type Change struct {
	Path string // "messages[2].content"
	Was  string
	Now  string
}

// String says it in one line.
func (d Divergence) String() string {
	if d.Entry == 0 {
		return fmt.Sprintf("request %d has no recorded turn left", d.Call)
	}
	var names []string
	for _, c := range d.Changes {
		names = append(names, c.Path)
	}
	return fmt.Sprintf("request %d is answered by turn %d and differs from it in %s", d.Call, d.Entry, strings.Join(names, ", "))
}

// Divergences returns the divergences so far, in the order of the requests.
func (p *Player) Divergences() []Divergence {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.divergences)
}

// Unused returns the numbers of the recorded turns that were not requested.
func (p *Player) Unused() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []int
	for i, used := range p.used {
		if !used && !p.entries[i].Cancelled {
			out = append(out, p.entries[i].N)
		}
	}
	return out
}

// WriteReport writes for people how the replay differed from the recording. What
// requests hold is escaped.
func (p *Player) WriteReport(w io.Writer) error {
	divergences, unused := p.Divergences(), p.Unused()
	p.mu.Lock()
	asked := p.asked
	p.mu.Unlock()
	var b strings.Builder
	add := func(format string, args ...any) { b.WriteString(string(termtext.Sprintf(format, args...))) }
	add("cassette %s: %d requests, %d recorded turns", p.name, asked, p.Len())
	if len(divergences) == 0 && len(unused) == 0 {
		add(", no divergence\n")
	} else {
		add(", %d diverged, %d turns not asked for\n", len(divergences), len(unused))
	}
	if p.torn {
		add("  the file ends in the middle of a turn, which is ignored\n")
	}
	for _, d := range divergences {
		add("  %s\n", d)
		for _, c := range d.Changes {
			add("    %s\n", c.Path)
			if c.Was != "" {
				add("      was %s\n", c.Was)
			}
			if c.Now != "" {
				add("      now %s\n", c.Now)
			}
		}
	}
	if len(unused) > 0 {
		add("  not asked for: %s\n", numbers(unused))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// numbers writes a sorted list with runs as ranges.
func numbers(list []int) string {
	var parts []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		part := strconv.Itoa(list[i])
		if j > i {
			part += "-" + strconv.Itoa(list[j])
		}
		parts = append(parts, part)
		i = j + 1
	}
	return strings.Join(parts, ", ")
}

// diff returns the first fields in which two requests differ beyond what the
// key leaves out.
func diff(was, now sentinels.Turn) []Change {
	a, errA := generic(was)
	b, errB := generic(now)
	if errA != nil || errB != nil {
		return []Change{{Path: "request"}}
	}
	var out []Change
	walk("", a, b, &out)
	return out
}

// walk collects the places where a and b differ, by name and then by index, so
// that two reports of one divergence read alike.
func walk(path string, a, b any, out *[]Change) {
	if len(*out) == maxChanges {
		return
	}
	switch a := a.(type) {
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			names := map[string]bool{}
			for name := range a {
				names[name] = true
			}
			for name := range b {
				names[name] = true
			}
			sorted := make([]string, 0, len(names))
			for name := range names {
				sorted = append(sorted, name)
			}
			sort.Strings(sorted)
			for _, name := range sorted {
				if !strings.HasSuffix(name, "Ms") || !isNumber(a[name]) || !isNumber(b[name]) {
					walk(strings.TrimPrefix(path+"."+name, "."), a[name], b[name], out)
				}
			}
			return
		}
	case []any:
		if b, ok := b.([]any); ok {
			for i := range max(len(a), len(b)) {
				walk(fmt.Sprintf("%s[%d]", path, i), item(a, i), item(b, i), out)
			}
			return
		}
	case string:
		if b, ok := b.(string); ok {
			// Shown as compared: the first difference of the texts themselves may
			// be one that does not count.
			was, now := steady(milliseconds.ReplaceAllString(a, "${1}0")), steady(milliseconds.ReplaceAllString(b, "${1}0"))
			if was != now {
				from := firstDifference(was, now)
				*out = append(*out, Change{path, around(was, from), around(now, from)})
			}
			return
		}
	}
	x, y := text(a), text(b)
	if x != y {
		*out = append(*out, Change{path, around(x, 0), around(y, 0)})
	}
}

// isNumber: durations under a name in Ms are not compared, as in the key.
func isNumber(v any) bool { _, ok := v.(json.Number); return ok }

// item is list[i], or nil beyond its end: an entry that is only in one of two
// lists is a change from or to nothing.
func item(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}

// text is a value as compact JSON, empty for none.
func text(v any) string {
	if v == nil {
		return ""
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}

// firstDifference is the length of what two texts share at their start.
func firstDifference(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// around returns some text from shortly before a place on, on one line.
func around(text string, at int) string {
	const before, most = 20, 80
	from := max(at-before, 0)
	to := min(from+most, len(text))
	out := strings.ToValidUTF8(text[from:to], "")
	if from > 0 {
		out = "..." + out
	}
	if to < len(text) {
		out += "..."
	}
	return strconv.Quote(out)
}

// summary is a request in a few words.
func summary(t sentinels.Turn) string {
	last := ""
	if n := len(t.Messages); n > 0 {
		last = t.Messages[n-1].Role + " " + around(t.Messages[n-1].Content, 0)
	}
	return fmt.Sprintf("%d messages, the last %s", len(t.Messages), last)
}
