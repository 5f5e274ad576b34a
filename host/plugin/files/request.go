package files

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/plugin/hostcall"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

const (
	maxMessage = 256 << 10 // clause A8
	maxPath    = 4 << 10   // bytes of a path, as in Linux
	maxChunk   = 160 << 10 // bytes of a file, so that it fits into a result as base64
	maxList    = 1000      // names of a folder
)

// A request is a decoded and validated request, before the grant is checked.
type request struct {
	folder, op     string
	path           string // valid for package fs: "." is the folder itself
	data           []byte // to write
	offset, length int64
}

// An operation is an operation that a guest can request.
type operation struct {
	fields  []string // in addition to folder, op and path
	changes bool     // needs a folder with write permission
	do      func(t *tree, r *request) (json.RawMessage, error)
}

// operations are the supported operations. A field that an operation does not use
// is an error: a caller that passes an offset to write expects a partial write.
var operations = map[string]operation{
	"read":   {fields: []string{"offset", "length"}, do: read},
	"list":   {fields: []string{"offset"}, do: list},
	"stat":   {do: stat},
	"write":  {fields: []string{"text", "encoding"}, changes: true, do: write},
	"remove": {changes: true, do: remove},
}

// decode decodes and validates the request of clause A6.16.
func decode(raw []byte) (*request, error) {
	if len(raw) > maxMessage {
		return nil, &abi.Error{Code: abi.Limit, Permanent: true, Message: fmt.Sprintf("%s: the request has more than %d KiB", abi.FuncFile, maxMessage>>10)}
	}
	members, err := strictjson.Members(raw, hostcall.Limits)
	if err != nil {
		return nil, bad("", err.Error())
	}
	r := &request{path: ".", length: maxChunk}
	// text and encoding say what they mean only together; given has the names of
	// all fields that are there.
	text, encoding, given := "", "", []string{}
	for _, m := range members {
		if string(m.Value) == "null" {
			continue // as an SDK may write what is absent
		}
		var err error
		switch m.Key {
		case "folder":
			r.folder, err = hostcall.Text(m.Value)
		case "op":
			r.op, err = hostcall.Text(m.Value)
		case "path":
			err = r.setPath(m.Value)
		case "text":
			text, err = hostcall.Text(m.Value)
		case "encoding":
			encoding, err = hostcall.Text(m.Value)
		case "offset":
			r.offset, err = hostcall.Number(m.Value)
		case "length":
			r.length, err = hostcall.Number(m.Value)
		default:
			err = errors.New("unknown field; want folder, op, path, text, encoding, offset or length")
		}
		if err != nil {
			if e := abi.As(err); e != nil {
				return nil, e
			}
			return nil, bad(m.Key, err.Error())
		}
		given = append(given, m.Key)
	}
	return r, r.check(given, text, encoding)
}

// check looks at what one field says of another.
func (r *request) check(given []string, text, encoding string) error {
	op, ok := operations[r.op]
	if !ok {
		return bad("op", fmt.Sprintf("%.20q is none of read, write, list, stat and remove", r.op))
	}
	for _, name := range given {
		if name != "folder" && name != "op" && name != "path" && !slices.Contains(op.fields, name) {
			return bad(name, "has no meaning for "+r.op)
		}
	}
	if r.op == "write" && !slices.Contains(given, "text") {
		return bad("text", "is missing; an empty text makes an empty file")
	}
	switch encoding {
	case "":
		r.data = []byte(text)
	case "base64":
		// Strict, since two spellings of the same bytes would be two requests.
		var err error
		if r.data, err = base64.StdEncoding.Strict().DecodeString(text); err != nil {
			return bad("text", "not base64")
		}
	default:
		return bad("encoding", fmt.Sprintf("%.20q is not supported: want base64", encoding))
	}
	// A larger length is reduced to the maximum, as at the end of a file.
	r.length = min(r.length, maxChunk)
	return nil
}

// setPath validates a path, which must be in canonical form as for package fs. A ".."
// is an error and is not resolved, so that a program which joins untrusted names
// notices it.
func (r *request) setPath(raw json.RawMessage) error {
	p, err := hostcall.Text(raw)
	switch {
	case err != nil:
		return err
	case p == "":
		return nil
	case len(p) > maxPath:
		return fmt.Errorf("more than %d bytes", maxPath)
	case strings.ContainsRune(p, 0):
		return errors.New("with a zero byte")
	case strings.HasPrefix(p, "/"), slices.Contains(strings.Split(p, "/"), ".."), !filepath.IsLocal(filepath.FromSlash(p)):
		return &abi.Error{Code: abi.Denied, Field: "path", Permanent: true, Message: fmt.Sprintf("%s %.200q: outside the folder", abi.FuncFile, p), Hint: "paths are relative to the folder and do not lead up"}
	// On systems where a backslash separates names too, it would hide a path in a
	// name.
	case !fs.ValidPath(p), filepath.Separator == '\\' && strings.Contains(p, `\`):
		return errors.New("want names separated by single slashes: a/b.txt")
	}
	r.path = p
	return nil
}

// bad is the error for an invalid request.
func bad(field, cause string) *abi.Error {
	at := abi.FuncFile
	if field = textcut.Mark(field, 100); field != "" {
		at += " " + field
	}
	return &abi.Error{Code: abi.BadFields, Field: field, Permanent: true, Message: at + ": " + cause}
}
