package sdk

import (
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Folder is one of the plugin's own words for folders; the operator says which
// folder it is. The manifest asks for it: {Use: UseFolder, Names: []string{"data"}}
// to read, "data:rw" to write too.
//
// Paths are relative to the folder, with single slashes and without . and ..; ""
// is the folder itself. Nothing outside of it can be reached.
type Folder struct {
	c    *Context
	word string
}

// An Entry is a file or folder in a [Folder].
type Entry struct {
	Name     string
	Dir      bool
	Size     int64  // in bytes; 0 of a folder
	Modified string // RFC 3339
}

// A Piece is a part of a file.
type Piece struct {
	Data      []byte
	Size      int64 // of the whole file
	Truncated bool  // the file goes on behind Data
}

// Folder returns the folder that the operator granted for a word, without ":rw".
func (c *Context) Folder(word string) Folder { return Folder{c, word} }

// Read returns a file whole. One that changes meanwhile is an error with code
// conflict; one that another program writes to is better read in pieces.
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

// ReadAt returns at most length bytes of a file from offset on; a length of 0 is
// the most there is in one answer, 160 KiB. Fewer may come where a character
// would be cut: the next piece begins behind the bytes that came.
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

// Write replaces a file as a whole, or not at all, and makes the folders on the
// way. A request has at most 256 KiB, so data that is no text may have 190 KiB.
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

// List returns what is in a folder, by name.
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

// ListFrom leaves out the first offset names of a folder and returns at most
// 1,000; more says that there are others.
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

// Stat looks at a path. What is not there is no error. The entry's name is the
// path.
func (f Folder) Stat(path string) (e Entry, exists bool, err error) {
	answer, err := f.c.call(abi.FuncFile, importFile, f.request("stat", path))
	if err != nil || !answer.Get("exists").BoolOr(false) {
		return Entry{}, false, err
	}
	return entryFrom(path, answer), true, nil
}

// Remove removes a file or an empty folder. What is not there is no error.
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
