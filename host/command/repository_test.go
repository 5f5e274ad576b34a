package command_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/command"
)

// TestMayMakeNoRepository: a model writes no file by which git takes a folder for a repository,
// whatever the folder is called and in whatever order the files are written.
func TestMayMakeNoRepository(t *testing.T) {
	for name, files := range map[string][]string{
		"refs last":        {"x/HEAD", "x/objects/keep", "x/refs/keep"},
		"HEAD last":        {"x/refs/keep", "x/objects/keep", "x/HEAD"},
		"objects last":     {"x/refs/keep", "x/HEAD", "x/objects/pack/keep"},
		"other case":       {"x/Refs/keep", "x/HEAD", "x/OBJECTS/keep"},
		"in the root":      {"HEAD", "refs/keep", "objects/keep"},
		"common elsewhere": {"x/y/HEAD", "x/y/commondir"},
		"a setting of it":  {"x/HEAD", "x/objects/", "x/refs/", "x/config"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if name == "other case" { // the file system may not distinguish it
				root = filepath.Join(root, "w")
				if err := os.MkdirAll(filepath.Join(root, "x", "refs"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			rules := command.FileRules{}.In(root)
			for i, file := range files {
				last := i == len(files)-1
				err := rules.MayWrite(file)
				if folder := file[len(file)-1] == '/'; !folder && (err != nil) != last {
					t.Fatalf("write %s: %v", file, err)
				}
				if last {
					break
				}
				path := filepath.Join(root, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if file[len(file)-1] == '/' {
					err = os.MkdirAll(path, 0o755)
				} else {
					err = os.WriteFile(path, nil, 0o644)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	root := t.TempDir()
	for _, file := range []string{"objects/a.go", "refs/b.go", "src/HEAD", "src/objects/x", "a/b/refs"} {
		if err := (command.FileRules{}).In(root).MayWrite(file); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}
