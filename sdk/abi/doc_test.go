package abi_test

import (
	"testing"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/abitest/abidoc"
)

// TestCodeTable compares clause A5.2 with the codes, their order included.
func TestCodeTable(t *testing.T) {
	rows, codes := abidoc.Table(t, "A5.2"), abi.Codes()
	if len(rows) != len(codes) {
		t.Fatalf("sdk/ABI.md A5.2 has %d codes, package abi %d", len(rows), len(codes))
	}
	for i, row := range rows {
		if row[0] != string(codes[i]) {
			t.Errorf("sdk/ABI.md A5.2: row %d is %q, want %q", i+1, row[0], codes[i])
		}
		if len(row) != 3 || row[2] == "" {
			t.Errorf("sdk/ABI.md A5.2: %s has no meaning", row[0])
		}
	}
}
