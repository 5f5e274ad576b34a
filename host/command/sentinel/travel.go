package sentinel

import (
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
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// bundleFormat is the form of a bundle that this program writes. One with a
// higher number is refused: what it means is not known here.
const bundleFormat = 1

// maxBundle bounds a bundle in bytes. It is held in memory whole, as is the
// commit that takes it in.
const maxBundle = 64 << 20

// bundleLimits bound a bundle. Its definitions have limits of their own.
var bundleLimits = strictjson.Limits{Bytes: maxBundle, Depth: strictjson.DefaultDepth + 8, Keys: 4_000_000}

// maxModule bounds the file of a plugin, in bytes: the limit of the engine.
const maxModule = 32 << 20

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
	// Text that is not plain JSON may still be a definition, which can have
	// comments, and whose own reader says where it is wrong. The probe is not
	// strict: a bundle with a duplicate key is still a bundle.
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
	// An unknown key would be lost on the way, so it is an error.
	if err := strictjson.Decode(src, &b, bundleLimits); err != nil {
		return bad("", "%v", err)
	}
	if len(b.Sentinels) == 0 {
		return bad("", "it holds no sentinel")
	}
	return b, nil
}

// readTravel reads a file of a person, below the caller's workspace unless its
// path is absolute.
func (f family) readTravel(call *command.Call, path string) ([]byte, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(call.Workspace, path)
	}
	in, _, err := f.opt.Trust.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, &abi.Error{Code: abi.NotFound, Field: "file", Message: fmt.Sprintf("import sentinels: no file %q", path)}
	}
	if err != nil {
		return nil, fmt.Errorf("import sentinels: %w", err)
	}
	defer in.Close()
	// One byte more than is allowed tells a file that is too large from one that
	// just fits, even if it grows meanwhile.
	src, err := io.ReadAll(io.LimitReader(in, maxBundle+1))
	if err != nil {
		return nil, fmt.Errorf("import sentinels: %w", err)
	}
	if len(src) > maxBundle {
		return nil, &abi.Error{Code: abi.Limit, Field: "file", Message: fmt.Sprintf("import sentinels: %q has more than %d bytes", path, maxBundle)}
	}
	return src, nil
}
