package checkpoint_test

import (
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/checkpoint"
)

// bigFolder makes a workspace of 50,000 files, of which git ignores 45,000.
func bigFolder(b *testing.B) *folder {
	f := &folder{t: b, dir: b.TempDir()}
	f.git("init")
	f.put(".gitignore", "node_modules/\n")
	for i := range 5000 {
		f.put(fmt.Sprintf("src/d%d/f%d.go", i%200, i), strings.Repeat(fmt.Sprintln("line", i), 60))
	}
	for i := range 45000 {
		f.put(path.Join("node_modules", fmt.Sprintf("p%d/lib/d%d/f%d.js", i%700, i%3, i)), strings.Repeat(fmt.Sprintln("var x =", i), 100))
	}
	return f
}

// BenchmarkFirstBegin is the first checkpoint of a workspace.
func BenchmarkFirstBegin(b *testing.B) {
	f := bigFolder(b)
	for b.Loop() {
		f.s = checkpoint.New(checkpoint.Options{Dir: b.TempDir()})
		f.create("r1", checkpoint.Begin)
	}
}

// BenchmarkBegin is a later checkpoint of a workspace: ten files differ.
func BenchmarkBegin(b *testing.B) {
	f := bigFolder(b)
	f.s = checkpoint.New(checkpoint.Options{Dir: b.TempDir()})
	f.create("r1", checkpoint.Begin)
	n := 0
	for b.Loop() {
		n++
		for i := range 10 {
			f.put(fmt.Sprintf("src/d%d/f%d.go", i, i), fmt.Sprintln("changed", n))
		}
		f.create("", "")
	}
}

// BenchmarkUndo is the undo of ten files.
func BenchmarkUndo(b *testing.B) {
	f := bigFolder(b)
	f.s = checkpoint.New(checkpoint.Options{Dir: b.TempDir()})
	n := 0
	for b.Loop() {
		b.StopTimer()
		n++
		of := fmt.Sprint("r", n)
		f.create(of, checkpoint.Begin)
		for i := range 10 {
			f.put(fmt.Sprintf("src/d%d/f%d.go", i, i), fmt.Sprintln("changed by", of))
		}
		f.create(of, checkpoint.End)
		b.StartTimer()
		if r := f.restore(of, false); !r.Success || len(r.Files) != 10 {
			b.Fatalf("%+v", r)
		}
	}
}
