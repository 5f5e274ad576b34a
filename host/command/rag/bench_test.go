package rag_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/rag"
)

// BenchmarkWorkspace calls the commands that walk a workspace of 20,000 files in
// 1,000 folders, with an index that is kept.
func BenchmarkWorkspace(b *testing.B) {
	dir := b.TempDir()
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	put(".gitignore", "*.tmp\n*.log\n*.o\n/build/\n/dist/\nnode_modules/\n.cache/\n**/gen/*.pb.go\n!keep.tmp\ncoverage/\n*.sw[op]\n.DS_Store\n")
	for i := range 1000 {
		folder := fmt.Sprintf("pkg%02d/sub%02d/dir%d", i%10, i/10%10, i/100)
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			b.Fatal(err)
		}
		for k := range 20 {
			put(fmt.Sprintf("%s/file%d.%s", folder, k, []string{"go", "ts", "md", "tmp"}[k%4]), fmt.Sprintf("package dir\n\n// needle%d\nfunc F%d() {}\n", i, k))
		}
	}
	reg, err := command.NewRegistry(rag.Commands(rag.Options{IndexDir: b.TempDir()})...)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct{ name, command, params string }{
		{"search", "rag/search", `{"query":"needle777"}`},
		{"search_paths", "rag/search", `{"query":"needle777","paths":["pkg07","pkg03/**/*.go"]}`},
		{"tree", "rag/build", `{"sources":["tree"]}`},
		{"files", "rag/build", `{"sources":["file:pkg01/**/*.go"]}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := reg.Call(b.Context(), &command.Call{Command: c.command, Params: json.RawMessage(c.params), By: command.ByStep, Workspace: dir}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
