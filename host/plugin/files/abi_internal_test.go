package files

import (
	"testing"

	"github.com/sentinel-runtime/sentinel/sdk/abitest/abidoc"
)

// TestLimitTable compares the limits of file operations with clause A8.7.
func TestLimitTable(t *testing.T) {
	abidoc.Want(t, "A8.7", map[string]string{
		"sentinel_file: path":              abidoc.Bytes(maxPath),
		"sentinel_file: part of a file":    abidoc.Bytes(maxChunk),
		"sentinel_file: names in one list": abidoc.Count(maxList),
	})
}
