package app

import (
	"fmt"
	"os"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/regularfile"
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

// DefinitionFiles lists the files in a folder of definitions.
func (a *App) DefinitionFiles(dir string) []string {
	files, err := regularfile.List(dir, ".json", ".jsonc")
	if err != nil {
		a.ErrorMessage(fmt.Sprintf("list %q: %v", dir, err), "")
	}
	return files
}
