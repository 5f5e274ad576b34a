package redact

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Mark stands where a secret was. It has no character that JSON, a URL or a
// shell would read as more than text.
const Mark = "[redacted]"

// MinLength is the shortest secret that can be registered, in bytes. Hiding
// "test" or "1234" wherever they occur would destroy what it should protect.
const MinLength = 8

// indexLength is how many leading bytes of a form are used to find it. Every
// form is at least this long.
const indexLength = 4

// A Redactor replaces registered secrets by [Mark]. The zero value is ready
// and knows none.
//
// # Concurrency
//
// All methods are safe for concurrent use. Register builds a new table and
// swaps it in; readers never wait.
type Redactor struct {
	mu    sync.Mutex          // serialises Register
	known map[string]struct{} // secrets as given
	forms map[string]struct{}
	table atomic.Pointer[table]
}

// table finds forms by their first bytes, longest first.
type table struct {
	first   [256]bool
	pairs   [1 << 16 / 64]uint64 // a bit for each two neighbors in the first bytes; nearly all text stops here
	keys    [1 << 16 / 64]uint64 // a bit for the hash of the first bytes
	longest int                  // length of the longest form
	forms   map[[indexLength]byte][]string
}

// Register adds secrets in all their forms. A secret shorter than [MinLength]
// is an error and is not registered; the others are.
func (r *Redactor) Register(secrets ...string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.forms == nil {
		r.known, r.forms = map[string]struct{}{}, map[string]struct{}{}
	}
	short, fresh := 0, false
	for _, secret := range secrets {
		secret = strings.TrimSpace(secret)
		if len(secret) < MinLength {
			short++
			continue
		}
		// A caller that reads secrets at each use registers them each time.
		if _, known := r.known[secret]; known {
			continue
		}
		r.known[secret], fresh = struct{}{}, true
		for _, leaf := range leaves(secret) {
			for _, form := range forms(leaf) {
				r.forms[form] = struct{}{}
			}
		}
	}
	if fresh {
		r.table.Store(newTable(r.forms))
	}
	if short > 0 {
		return fmt.Errorf("register secrets: %d shorter than %d bytes cannot be hidden", short, MinLength)
	}
	return nil
}

// Active reports whether any secret is registered.
func (r *Redactor) Active() bool { return r != nil && r.table.Load() != nil }

// Redact returns data without the registered secrets. It returns data itself,
// not a copy, when there is nothing to take out. For JSON use [Redactor.JSON],
// which keeps the text valid.
func (r *Redactor) Redact(data []byte) []byte { return r.replace(data, Mark) }

// replace is Redact with a mark of the caller's.
func (r *Redactor) replace(data []byte, mark string) []byte {
	if !r.Active() {
		return data
	}
	return without(data, r.table.Load().find(data), mark)
}

// without puts mark in the place of each span.
func without(data []byte, spans []span, mark string) []byte {
	if len(spans) == 0 {
		return data
	}
	var out bytes.Buffer
	end := 0
	for _, s := range spans {
		out.Write(data[end:s.from])
		out.WriteString(mark)
		end = s.to
	}
	out.Write(data[end:])
	return out.Bytes()
}

// Has reports whether [Redactor.Redact] would take something out of data. What it takes out of a line
// of data, it finds in data too.
func (r *Redactor) Has(data []byte) bool { return r.Active() && len(r.table.Load().find(data)) > 0 }

// String is [Redactor.Redact] for text.
func (r *Redactor) String(text string) string { return r.text(text, Mark) }

func (r *Redactor) text(text, mark string) string {
	if !r.Active() {
		return text
	}
	data := []byte(text)
	if out := r.replace(data, mark); len(out) != len(data) || !bytes.Equal(out, data) {
		return string(out)
	}
	return text
}

func newTable(set map[string]struct{}) *table {
	t := &table{forms: map[[indexLength]byte][]string{}}
	for form := range set {
		t.first[form[0]], t.longest = true, max(t.longest, len(form))
		for i := range indexLength - 1 {
			set64(&t.pairs, uint16(form[i])<<8|uint16(form[i+1]))
		}
		set64(&t.keys, hashOf([]byte(form)))
		key := [indexLength]byte([]byte(form[:indexLength]))
		t.forms[key] = append(t.forms[key], form)
	}
	for _, list := range t.forms {
		slices.SortFunc(list, func(a, b string) int { return len(b) - len(a) })
	}
	return t
}

type span struct{ from, to int }

func set64(bits *[1 << 16 / 64]uint64, i uint16) { bits[i/64] |= 1 << (i % 64) }

func has64(bits *[1 << 16 / 64]uint64, i uint16) bool { return bits[i/64]&(1<<(i%64)) != 0 }

// hashOf returns a hash of the first bytes of data.
func hashOf(data []byte) uint16 { return uint16(binary.LittleEndian.Uint32(data) * 0x9e3779b1 >> 16) }

// exact returns where forms occur as they are, merged. It looks at two of three bytes: of the first
// bytes of a form, one of the pairs of neighbors is among them.
func (t *table) exact(data []byte) []span {
	var spans []span
	for at := 0; at+1 < len(data); at += indexLength - 1 {
		if !has64(&t.pairs, uint16(data[at])<<8|uint16(data[at+1])) {
			continue
		}
		for i := max(at-(indexLength-2), 0); i <= at && i+indexLength <= len(data); i++ {
			if !has64(&t.keys, hashOf(data[i:])) {
				continue
			}
			size := t.longestAt(data[i:])
			if n := len(spans); size > 0 && n > 0 && i < spans[n-1].to {
				spans[n-1].to = max(spans[n-1].to, i+size)
			} else if size > 0 {
				spans = append(spans, span{i, i + size})
			}
		}
	}
	return spans
}

// longestAt returns how many bytes of the longest form data begins with, 0 if it begins with none.
func (t *table) longestAt(data []byte) int {
	for _, form := range t.forms[[indexLength]byte(data)] {
		if size := occurring(data, form); size > 0 {
			return size
		}
	}
	return 0
}

// cutMarks stand where this program has cut a text, also one that it did not write.
var cutMarks = []string{"...", "…"}

// occurring returns how many bytes of a form data begins with: all, or those before the mark of a
// cut, which may have been made before the secret was known. It is 0 for others.
func occurring(data []byte, form string) int {
	n := 0
	for n < len(form) && n < len(data) && data[n] == form[n] {
		n++
	}
	if n == len(form) {
		return n
	}
	for size := n; size >= max(indexLength, n-len("...")); size-- { // the form may go on as a mark begins
		for _, mark := range cutMarks {
			if bytes.HasPrefix(data[size:], []byte(mark)) {
				return size
			}
		}
	}
	return 0
}
