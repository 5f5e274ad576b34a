package sentinels_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

func BenchmarkDecodeFiles(b *testing.B) {
	files, _ := filepath.Glob("testdata/spec/*.json")
	opt := options(b)
	for i, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(i+1), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				if _, problems := sentinels.Decode(src, opt); len(problems) > 0 {
					b.Fatal(problems)
				}
			}
		})
	}
}

// BenchmarkDecodeData decodes a definition whose text is mostly data, so that reading
// the text takes most of the time.
func BenchmarkDecodeData(b *testing.B) {
	var src strings.Builder
	src.WriteString(`{"name": "data", /* rows */ "steps": [{"type": "any", "rows": [`)
	for i := range 1000 {
		fmt.Fprintf(&src, `{"id": %d, "name": "row \"%d\"", "tags": ["a", "bc", null], "nested": {"x": [1.5, true]}},`+"\n", i, i)
	}
	src.WriteString("]}]}")
	text := []byte(src.String())
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, problems := sentinels.Decode(text, sentinels.DecodeOptions{}); len(problems) > 0 {
			b.Fatal(problems)
		}
	}
}

func BenchmarkHash(b *testing.B) {
	d := largeDefinition()
	b.ReportAllocs()
	for b.Loop() {
		d.Hash()
	}
}

func BenchmarkDiff(b *testing.B) {
	d := largeDefinition()
	next, err := d.RemoveStep("0")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if len(sentinels.Diff(d, next)) == 0 {
			b.Fatal("no change")
		}
	}
}

func BenchmarkRewrite(b *testing.B) {
	d := largeDefinition()
	src := sentinels.Encode(d)
	next, err := d.RemoveStep("0")
	if err != nil {
		b.Fatal(err)
	}
	opt := options(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := sentinels.Rewrite(src, next, opt); err != nil {
			b.Fatal(err)
		}
	}
}

// largeDefinition returns a random definition with at least 20 steps.
func largeDefinition() *sentinels.Definition {
	m := &maker{Rand: rand.New(rand.NewPCG(7, 7))}
	d := m.definition(0)
	for len(d.Steps) < 20 {
		more := m.definition(0)
		d.Steps = append(d.Steps, more.Steps...)
	}
	return d
}

func BenchmarkCanonical(b *testing.B) {
	raw := sentinels.Encode(largeDefinition())
	b.ReportAllocs()
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if _, err := sentinels.Canonical(raw); err != nil {
			b.Fatal(err)
		}
	}
}
