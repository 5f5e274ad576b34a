package app

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers/standard"
)

// MaxFile is the largest file that a flag may name, in bytes.
const MaxFile = 64 << 20

// OpenFile opens a file that the user named. It has to be a regular file, or a
// descriptor that this process inherited, such as /dev/fd/63: shells pass the output
// of <(command) that way. Opening those does not wait.
func OpenFile(path string) (*os.File, error) {
	if path == "/dev/stdin" || strings.HasPrefix(path, "/dev/fd/") || strings.HasPrefix(path, "/proc/self/fd/") {
		return os.Open(path)
	}
	f, _, err := regularfile.Open(path)
	return f, err
}

// ReadFile reads a file that the user named, of at most limit bytes.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, err := OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return regularfile.ReadAll(f, limit)
}

// DefinitionFiles lists the files in a folder of definitions. Hidden files are none.
func (a *App) DefinitionFiles(dir string) []string {
	files, err := regularfile.List(dir, sentinels.FileExtensions()...)
	if err != nil {
		a.ErrorMessage(fmt.Sprintf("list %q: %v", dir, err), "")
	}
	return slices.DeleteFunc(files, func(file string) bool { return strings.HasPrefix(filepath.Base(file), ".") })
}

// Duplicates returns a problem for each file in the project's folders whose id another
// file has too. Files that cannot be read or have problems are left out.
func (a *App) Duplicates() (list sentinels.Problems) {
	byID := map[sentinels.ID][]string{}
	for _, dir := range a.Folders() {
		for _, file := range a.DefinitionFiles(dir) {
			text, err := regularfile.Read(file, sentinels.MaxBytes)
			if err != nil {
				continue
			}
			if def, problems := sentinels.Decode(text, sentinels.DecodeOptions{Triggers: standard.Set().Formats(), File: file}); len(problems) == 0 {
				byID[def.ID] = append(byID[def.ID], file)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		for i, file := range byID[id] {
			if len(byID[id]) > 1 {
				other := byID[id][(i+1)%len(byID[id])]
				list = append(list, sentinels.Problem{
					File: a.Relative(file), Kind: sentinels.KindDuplicate, Message: fmt.Sprintf("the id %q is also that of %s", id, a.Relative(other)),
					Hint: "give one of the two another id; a server keeps the one that was live",
				})
			}
		}
	}
	return list
}
