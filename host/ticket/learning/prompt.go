package learning

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
)

// A prompt is a text in which the words of others are marked as data: between a line
// <data-KEY from="SOURCE"> and a line </data-KEY>. KEY is computed from all data of the
// prompt, so that no author can know it, and no data contains it. Lines of data are
// indented, also for terminals. In them control characters and those that are not shown are
// written as \x1b or \u202e, and what looks like a delimiter begins with &lt;.
type prompt struct {
	parts []part
	bytes int // of parts, with their delimiters
	room  int // for what comes next
	left  int // texts that did not fit, or not as a whole
}

// A part is words of others, or text of this program.
type part struct {
	data         bool
	source, text string
}

const (
	keyLen   = 16
	overhead = len("<data- from=\"\">\n\n</data->\n") + 2*keyLen
	maxName  = 100 // bytes of a source
	indent   = "  "
)

// say adds text of this program, whether or not there is room.
func (p *prompt) say(format string, args ...any) {
	p.add(part{text: fmt.Sprintf(format, args...) + "\n"})
}

func (p *prompt) add(one part) {
	n := len(one.text)
	if one.data {
		n += len(one.source) + overhead
	}
	p.parts = append(p.parts, one)
	p.bytes += n
	p.room -= n
}

// share gives what comes next more room.
func (p *prompt) share(n int) { p.room += n }

// data adds words of others, shortened to limit bytes and to the room, if there is any.
func (p *prompt) data(source, text string, limit int) {
	source, text = safeName(source), quoted(text)
	limit = min(limit, p.room-overhead-len(source))
	if limit < len(indent+textcut.Ellipsis)+1 && len(text) > limit {
		p.left++
		return
	}
	if len(text) > limit {
		p.left++
		text = textcut.Mark(text, limit)
	}
	p.add(part{true, source, text})
}

// String returns the prompt.
func (p *prompt) String() string {
	var all strings.Builder
	for _, one := range p.parts {
		if one.data {
			fmt.Fprintf(&all, "%d\x00%s\x00%s", len(one.text), one.source, one.text)
		}
	}
	key := keyFor(all.String())
	var b strings.Builder
	for _, one := range p.parts {
		if !one.data {
			b.WriteString(strings.ReplaceAll(one.text, keyMark, key))
			continue
		}
		fmt.Fprintf(&b, "<data-%s from=\"%s\">\n%s\n</data-%s>\n", key, one.source, one.text, key)
	}
	return b.String()
}

// keyMark stands for the key in texts of this program.
const keyMark = "\x00key\x00"

// keyFor returns a key that a text does not contain.
func keyFor(text string) string {
	sum := sha256.Sum256([]byte(text))
	for {
		key := hex.EncodeToString(sum[:])[:keyLen]
		if !strings.Contains(text, key) {
			return key
		}
		sum = sha256.Sum256(sum[:])
	}
}

// delimiter is what looks like one of ours, to a model that reads loosely.
var delimiter = lazyregexp.New(`(?i)<(\s*/?\s*data\s*-)`)

// neutral returns a text as it may stand between delimiters.
func neutral(text string) string {
	return delimiter.ReplaceAllString(string(termtext.Block(strings.TrimSpace(text), "")), "&lt;$1")
}

// quoted returns a text as the lines between delimiters.
func quoted(text string) string { return indent + strings.ReplaceAll(neutral(text), "\n", "\n"+indent) }

// safeName returns the name of a source without what could end its quotes or line.
func safeName(source string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(`"<>\`, r) {
			return '_'
		}
		return r
	}, textcut.Cut(neutral(strings.ReplaceAll(source, "\n", " ")), maxName))
}
