//go:build unix

package trust_test

import (
	"path/filepath"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/internal/trust"
)

// BenchmarkCheck is what the start of a host pays for each definition, beside reading
// it.
func BenchmarkCheck(b *testing.B) {
	file := filepath.Join(tree(b, "a/", "a/.sentinel/", "a/.sentinel/sentinels/", "a/.sentinel/sentinels/x.json"), "a/.sentinel/sentinels/x.json")
	var p *trust.Policy
	for b.Loop() {
		if err := p.Check(file); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	file := filepath.Join(tree(b, "a/", "a/.sentinel/", "a/.sentinel/sentinels/", "a/.sentinel/sentinels/x.json"), "a/.sentinel/sentinels/x.json")
	var p *trust.Policy
	for b.Loop() {
		if _, err := p.Read(file, 100); err != nil {
			b.Fatal(err)
		}
	}
}
