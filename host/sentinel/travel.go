package sentinel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// bundleFormat is the form of a bundle that this program writes. One with a
// higher number is refused: what it means is not known here.
const bundleFormat = 1

// maxBundle bounds a bundle in bytes. It is held in memory whole, as is the
// commit that takes it in.
const maxBundle = 64 << 20

// A bundle is what definitions travel in from store to store. Unlike a
// definition it is written by programs alone, so it is plain JSON.
type bundle struct {
	Format     int         `json:"format"`
	ExportedAt time.Time   `json:"exportedAt"`
	Sentinels  []traveller `json:"sentinels"`
}

// A traveller is one sentinel of a bundle.
type traveller struct {
	SentinelID sentinels.ID    `json:"sentinelId"`
	Definition json.RawMessage `json:"definition"`
	Revisions  []travelled     `json:"revisions,omitempty" jsonschema:"its history, the oldest first; the last one holds the definition"`
}

// A travelled revision is one of a history. Its origin stays behind: it is a
// path of the machine that it comes from.
type travelled struct {
	Revision   int             `json:"revision"`
	Name       string          `json:"name,omitempty"`
	Hash       string          `json:"hash,omitempty"`
	SavedAt    time.Time       `json:"savedAt"`
	By         string          `json:"by,omitempty"`
	Note       string          `json:"note,omitempty"`
	Deleted    bool            `json:"deleted,omitempty"`
	Definition json.RawMessage `json:"definition,omitempty"`
}

// stored is the revision as the engine has it. Whose it is, the engine takes from
// the definition it comes with.
func (t travelled) stored() runtime.Stored {
	return runtime.Stored{Name: t.Name, Revision: t.Revision, Hash: t.Hash, SavedAt: t.SavedAt, By: t.By, Note: t.Note, Deleted: t.Deleted, Definition: t.Definition}
}

// readBundle reads a bundle, or a definition as a bundle of one: a file says
// what it is by what is in it.
func readBundle(src []byte, file string) (bundle, error) {
	var probe struct {
		Format    json.RawMessage `json:"format"`
		Sentinels json.RawMessage `json:"sentinels"`
	}
	// Two keys tell the kinds apart: no definition has them, since unknown keys
	// are problems there.
	// What is no plain JSON may still be a definition, which can have comments,
	// and whose own reader says where it is wrong.
	if json.Unmarshal(src, &probe) != nil || probe.Sentinels == nil {
		return bundle{Format: bundleFormat, Sentinels: []traveller{{Definition: src}}}, nil
	}
	bad := func(hint, format string, args ...any) (bundle, error) {
		return bundle{}, &abi.Error{Code: abi.BadFields, Permanent: true, Message: fmt.Sprintf("read bundle %q: ", file) + fmt.Sprintf(format, args...), Hint: hint}
	}
	var format int
	if json.Unmarshal(probe.Format, &format) != nil || format < 1 {
		return bad("a bundle is what sentinel/export writes", "its format is not given")
	}
	// A format of ours that is older would be read here, too, once there is one.
	if format > bundleFormat {
		return bad("a newer release made it: use that, or export it there again for this one", "its format is %d, the newest that is known is %d", format, bundleFormat)
	}
	var b bundle
	d := json.NewDecoder(bytes.NewReader(src))
	d.DisallowUnknownFields() // what is not understood would be lost on the way
	if err := d.Decode(&b); err != nil {
		return bad("", "%v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return bad("", "there is more after its end")
	}
	if len(b.Sentinels) == 0 {
		return bad("", "it holds no sentinel")
	}
	return b, nil
}

// readTravel reads a file of a person, below the caller's workspace unless its
// path is absolute.
func readTravel(call *command.Call, path string) ([]byte, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(call.Workspace, path)
	}
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, &abi.Error{Code: abi.NotFound, Field: "file", Message: fmt.Sprintf("import sentinels: no file %q", path)}
	}
	if err != nil {
		return nil, fmt.Errorf("import sentinels: %w", err)
	}
	defer f.Close()
	// One byte more than is allowed tells a file that is too large from one that
	// just fits, also when its size is not known before, as with a pipe.
	src, err := io.ReadAll(io.LimitReader(f, maxBundle+1))
	if err != nil {
		return nil, fmt.Errorf("import sentinels: %w", err)
	}
	if len(src) > maxBundle {
		return nil, &abi.Error{Code: abi.Limit, Field: "file", Message: fmt.Sprintf("import sentinels: %q has more than %d bytes", path, maxBundle)}
	}
	return src, nil
}
