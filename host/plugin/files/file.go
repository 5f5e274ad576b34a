package files

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/host/plugin/hostcall"
)

// piece is the answer to read. Encoding is "base64" where the bytes are no text,
// or one that would be too long as JSON.
type piece struct {
	Text      string `json:"text"`
	Encoding  string `json:"encoding,omitempty"`
	Size      int64  `json:"size"`
	Truncated bool   `json:"truncated"`
}

// frame is everything in an answer that is not the text, and what the engine
// puts around it.
const frame = 256

// read answers with one piece of a file. Size is that of the open file, so it
// and the piece are of the same version of it, as long as writers rename.
func read(t *tree, r *request) (json.RawMessage, error) {
	p, err := t.Resolve(r.path, false)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	f, info, err := t.OpenFile(p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// One byte more than is wanted tells whether there is more.
	b, err := io.ReadAll(io.NewSectionReader(f, r.offset, r.length+1))
	if err != nil {
		return nil, t.Explain(r.path, err)
	}
	// A file that is longer than it says, as some of the system are, still comes
	// whole: what was read counts, not the size.
	out := piece{Size: info.Size(), Truncated: int64(len(b)) > r.length}
	if out.Truncated {
		b = wholeRunes(b[:r.length])
	}
	out.Text = string(b)
	if utf8.Valid(b) {
		answer, err := hostcall.Answer(out)
		if err != nil || len(answer) <= maxMessage-frame {
			return answer, err
		}
	}
	out.Text, out.Encoding = base64.StdEncoding.EncodeToString(b), "base64"
	return hostcall.Answer(out)
}

// wholeRunes leaves out the beginning of a character at the end of a text, so
// that the pieces of a text are texts; but never all there is, or a reader that
// goes on where a piece ends would not get on.
func wholeRunes(b []byte) []byte {
	for i := 1; i <= min(utf8.UTFMax-1, len(b)-1); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-i:]) && utf8.Valid(b[:len(b)-i]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// write replaces a file. Made again after a crash it gives the same file.
func write(t *tree, r *request) (json.RawMessage, error) {
	p, err := t.Resolve(r.path, true)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	if _, err := t.WriteFile(p, r.data); err != nil {
		return nil, err
	}
	return hostcall.Answer(map[string]int{"size": len(r.data)})
}

// remove takes a file or an empty folder away. Made again it finds nothing,
// which is what was wanted, also if a folder on the way is gone by now.
func remove(t *tree, r *request) (json.RawMessage, error) {
	p, err := t.Resolve(r.path, false)
	if err != nil {
		if gone(err) {
			return json.RawMessage("{}"), nil
		}
		return nil, err
	}
	defer p.Close()
	return json.RawMessage("{}"), t.Remove(p)
}
