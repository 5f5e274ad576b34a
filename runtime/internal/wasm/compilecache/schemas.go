package compilecache

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"

	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// schemaMarker returns the file name of the marker in the module's folder. It depends
// on the manifest, because a guest may return another one later.
func schemaMarker(manifest []byte) string {
	sum := sha256.Sum256(manifest)
	return "schemas-" + hex.EncodeToString(sum[:16])
}

// SchemasCompiled reports whether the marker of a manifest exists.
func (c *Cache) SchemasCompiled(digest string, manifest []byte) bool {
	_, err := os.Stat(filepath.Join(c.Dir(digest), schemaMarker(manifest)))
	return err == nil
}

// MarkSchemas writes the marker of a manifest.
func (c *Cache) MarkSchemas(digest string, manifest []byte) error {
	err := os.MkdirAll(c.Dir(digest), 0o700)
	if err == nil {
		err = regularfile.WriteFile(filepath.Join(c.Dir(digest), schemaMarker(manifest)), nil, 0o600)
	}
	if err != nil {
		return abi.New(abi.Unavailable, "write compile cache: "+err.Error())
	}
	return nil
}

// SchemaRefusal returns the file name of a refusal for the schemas of a manifest.
func SchemaRefusal(manifest []byte) string { return "refused-" + schemaMarker(manifest) + ".json" }
