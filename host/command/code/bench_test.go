package code_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/code"
)

// BenchmarkWorkspace calls the commands that walk a workspace of 20,000 files in
// 1,000 folders.
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
	reg, err := command.NewRegistry(code.Commands(code.Options{})...)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct{ name, command, params string }{
		{"search", "code/search", `{"pattern":"needle777$"}`},
		{"search_glob", "code/search", `{"pattern":"needle777$","glob":"*.{go,ts}"}`},
		{"search_folder", "code/search", `{"pattern":"needle777$","glob":"pkg07/**/*.go"}`},
		{"tree", "code/tree", `{"depth":8}`},
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
