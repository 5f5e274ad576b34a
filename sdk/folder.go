package sdk

import (
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Folder is a folder under a name that the plugin has chosen; the operator grants a
// folder for it. The manifest requests it: {Use: UseFolder, Names: []string{"data"}}
// to read, "data:rw" to write too.
//
// Paths are relative to the folder, with single slashes and without . and ..; ""
// is the folder itself. Paths outside of it are not accessible.
type Folder struct {
	c    *Context
	word string
}

// An Entry is a file or folder in a [Folder].
type Entry struct {
	Name     string
	Dir      bool
	Size     int64  // in bytes; 0 for a folder
	Modified string // RFC 3339
}

// A Piece is a part of a file.
type Piece struct {
	Data      []byte
	Size      int64 // of the whole file
	Truncated bool  // the file has more bytes after Data
}

// Folder returns the folder that the operator has granted for a name, without ":rw".
func (c *Context) Folder(word string) Folder { return Folder{c, word} }

// Read returns a whole file. If it changes meanwhile, the error has the code conflict;
// use ReadAt for a file that another program is writing.
func (f Folder) Read(path string) ([]byte, error) {
	var all []byte
	for size := int64(-1); ; {
		p, err := f.ReadAt(path, int64(len(all)), 0)
		if err != nil {
			return nil, err
		}
		if size >= 0 && p.Size != size || p.Truncated && len(p.Data) == 0 {
			return nil, abi.New(abi.Conflict, "read "+Quote(path)+": the file changed meanwhile")
		}
		size, all = p.Size, append(all, p.Data...)
		if !p.Truncated {
			return all, nil
		}
	}
}

// ReadAt returns at most length bytes of a file, starting at offset; a length of 0 is
// the limit of one answer, 160 KiB. It may return fewer, so that no character is cut:
// the next piece begins after the bytes that were returned.
func (f Folder) ReadAt(path string, offset, length int64) (Piece, error) {
	request := f.request("read", path)
	if offset > 0 {
		request = request.With("offset", Int(offset))
	}
	if length > 0 {
		request = request.With("length", Int(length))
	}
	answer, err := f.c.call(abi.FuncFile, importFile, request)
	if err != nil {
		return Piece{}, err
	}
	p := Piece{Size: answer.Get("size").IntOr(0), Truncated: answer.Get("truncated").BoolOr(false)}
	p.Data, err = bytesOf(abi.FuncFile, answer.Get("text").StringOr(""), answer.Get("encoding").StringOr(""))
	return p, err
}

// Write replaces a file atomically and creates the folders of its path. A request has
// at most 256 KiB, which is 190 KiB of data that is not text.
func (f Folder) Write(path string, data []byte) error {
	request := f.request("write", path)
	if utf8.Valid(data) {
		request = request.With("text", String(string(data)))
	} else {
		request = request.With("text", String(encodeBase64(data))).With("encoding", String("base64"))
	}
	_, err := f.c.call(abi.FuncFile, importFile, request)
	return err
}

// List returns the entries of a folder, sorted by name.
func (f Folder) List(path string) ([]Entry, error) {
	var all []Entry
	for {
		entries, more, err := f.ListFrom(path, int64(len(all)))
		if err != nil {
			return nil, err
		}
		all = append(all, entries...)
		if !more || len(entries) == 0 {
			return all, nil
		}
	}
}

// ListFrom skips the first offset names of a folder and returns at most 1,000 entries;
// more is true if there are others.
func (f Folder) ListFrom(path string, offset int64) (entries []Entry, more bool, err error) {
	request := f.request("list", path)
	if offset > 0 {
		request = request.With("offset", Int(offset))
	}
	answer, err := f.c.call(abi.FuncFile, importFile, request)
	if err != nil {
		return nil, false, err
	}
	for _, e := range answer.Get("entries").Items() {
		entries = append(entries, entryFrom(e.Get("name").StringOr(""), e))
	}
	return entries, answer.Get("truncated").BoolOr(false), nil
}

// Stat returns the entry of a path. A path that does not exist is not an error. The
// entry's name is the path.
func (f Folder) Stat(path string) (e Entry, exists bool, err error) {
	answer, err := f.c.call(abi.FuncFile, importFile, f.request("stat", path))
	if err != nil || !answer.Get("exists").BoolOr(false) {
		return Entry{}, false, err
	}
	return entryFrom(path, answer), true, nil
}

// Remove removes a file or an empty folder. A missing one is not an error.
func (f Folder) Remove(path string) error {
	_, err := f.c.call(abi.FuncFile, importFile, f.request("remove", path))
	return err
}

func (f Folder) request(op, path string) Value {
	return Object(F("folder", String(f.word)), F("op", String(op)), F("path", Text(path)))
}

func entryFrom(name string, v Value) Entry {
	return Entry{Name: name, Dir: v.Get("dir").BoolOr(false), Size: v.Get("size").IntOr(0), Modified: v.Get("modified").StringOr("")}
}
