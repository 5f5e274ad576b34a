package sentinel

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// bundleFormat is the only format of bundles.
const bundleFormat = 1

// maxBundle is the maximum size of a bundle in bytes. It is decoded in memory and
// imported in one commit.
const maxBundle = 64 << 20

// bundleLimits are the limits of a bundle. Its definitions have limits of their own.
var bundleLimits = strictjson.Limits{Bytes: maxBundle, Depth: strictjson.DefaultDepth + 8, Keys: 4_000_000}

// A bundle is sentinels in one JSON document, see the package documentation. Unlike a
// definition, it has no comments.
type bundle struct {
	Format    int               `json:"format" jsonschema:"1"`
	Sentinels []bundledSentinel `json:"sentinels"`
	Plugins   []bundledPlugin   `json:"plugins,omitempty" jsonschema:"plugins that the definitions need, without those of every host; their code is not in the bundle"`
}

type bundledSentinel struct {
	SentinelID sentinels.ID      `json:"sentinelId"`
	Within     []string          `json:"within,omitzero" jsonschema:"commands that its runs may call, because a model or an agent made it; null for all"`
	Definition json.RawMessage   `json:"definition"`
	Revisions  []bundledRevision `json:"revisions,omitempty" jsonschema:"its history, the oldest first; the last one has the definition"`
}

type bundledRevision struct {
	fullRevision
	Within []string `json:"within,omitzero" jsonschema:"as of the sentinel"`
}

type bundledPlugin struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	Digest  string `json:"digest" jsonschema:"SHA-256 of its module"`
}

// decodeBundle decodes a bundle, or a definition as a bundle of one. Only a bundle has
// the key "sentinels".
func decodeBundle(src []byte, file string) (bundle, error) {
	// The probe is not strict: a bundle with an error in it is not a definition. Text that
	// is not JSON may be a definition with comments.
	probe := map[string]json.RawMessage{}
	if text := bytes.TrimSpace(src); len(text) > 0 && text[0] == '{' && json.Valid(text) {
		strictjson.EachMember(text, func(name, value []byte) bool { probe[strictjson.Unquote(name)] = value; return true })
	}
	switch {
	case probe["sentinels"] != nil:
	case probe["bundle"] != nil: // the answer of sentinel/export
		return decodeBundle(probe["bundle"], file)
	default:
		return bundle{Format: bundleFormat, Sentinels: []bundledSentinel{{Definition: src}}}, nil
	}
	bad := func(hint, format string, args ...any) (bundle, error) {
		return bundle{}, &abi.Error{Code: abi.BadFields, Permanent: true, Message: fmt.Sprintf("read bundle %q: ", file) + fmt.Sprintf(format, args...), Hint: hint}
	}
	var format int
	if json.Unmarshal(probe["format"], &format) != nil || format < 1 {
		return bad("sentinel/export writes bundles", "missing or invalid format")
	}
	if format > bundleFormat {
		return bad("import it with the release that exported it, or a newer one", "unknown format %d, the newest known is %d", format, bundleFormat)
	}
	var b bundle
	if err := strictjson.Decode(src, &b, bundleLimits); err != nil {
		return bad("", "%v", err)
	}
	if len(b.Sentinels) == 0 {
		return bad("", "no sentinels in it")
	}
	return b, nil
}
