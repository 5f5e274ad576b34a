package files

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/host/plugin/hostcall"
)

// chunk is the result of read. Encoding is "base64" if the bytes are not UTF-8 or
// would be too long as a JSON string.
type chunk struct {
	Text      string `json:"text"`
	Encoding  string `json:"encoding,omitempty"`
	Size      int64  `json:"size"`
	Truncated bool   `json:"truncated"`
}

// overhead is reserved in a result for all but the text, and for what the engine
// adds to it.
const overhead = 256

// read returns one chunk of a file. Size is that of the open file, so size and
// chunk are of the same version, if writers replace files by rename.
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
	// One extra byte shows whether the chunk is truncated.
	b, err := io.ReadAll(io.NewSectionReader(f, r.offset, r.length+1))
	if err != nil {
		return nil, t.Explain(r.path, err)
	}
	// Some files of the system report size 0, so truncation is decided by the bytes
	// that were read.
	out := chunk{Size: info.Size(), Truncated: int64(len(b)) > r.length}
	if out.Truncated {
		b = wholeRunes(b[:r.length])
	}
	out.Text = string(b)
	if utf8.Valid(b) {
		answer, err := hostcall.Answer(out)
		if err != nil || len(answer) <= maxMessage-overhead {
			return answer, err
		}
	}
	out.Text, out.Encoding = base64.StdEncoding.EncodeToString(b), "base64"
	return hostcall.Answer(out)
}

// wholeRunes removes an incomplete character from the end of a text, so that each
// chunk of a UTF-8 file is valid UTF-8. It never returns an empty chunk, or a reader
// that continues at the end of a chunk would loop.
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

// write replaces a file. It is idempotent.
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

// remove removes a file or an empty folder. It is idempotent: a missing file or
// parent folder is not an error.
func remove(t *tree, r *request) (json.RawMessage, error) {
	p, err := t.Resolve(r.path, false)
	if err != nil {
		if missing(err) {
			return json.RawMessage("{}"), nil
		}
		return nil, err
	}
	defer p.Close()
	return json.RawMessage("{}"), t.Remove(p)
}
