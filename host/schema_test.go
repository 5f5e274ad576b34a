package host_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestSchemaFileIsCurrent holds sentinels/schema.json to the format and to the
// built-in step types; "make schema" writes it.
func TestSchemaFileIsCurrent(t *testing.T) {
	h := open(t, host.Options{})
	stored, err := os.ReadFile("../sentinels/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var want, got bytes.Buffer
	if err := json.Compact(&got, stored); err != nil {
		t.Fatal(err)
	}
	if err := json.Compact(&want, sentinels.Schema(h.Runtime().Types(), h.Runtime().DecodeOptions("").Triggers)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want.Bytes()) {
		t.Error("sentinels/schema.json is not what the format and the step types say; run make schema")
	}
}
