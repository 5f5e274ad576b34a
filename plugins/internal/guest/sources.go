package guest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Sources returns the source files of the module, relative to root and with
// slashes: the Go files of the SDK and of each step type, except tests.
func Sources(root string) ([]string, error) {
	dirs := []string{"sdk", "sdk/abi"}
	entries, err := os.ReadDir(filepath.Join(root, "plugins"))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.IsDir() && e.Name() != "internal" && e.Name() != "testdata" {
			dirs = append(dirs, "plugins/"+e.Name())
		}
	}
	var files []string
	for _, dir := range dirs {
		entries, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(dir)))
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			name := e.Name()
			if !e.IsDir() && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
				files = append(files, path.Join(dir, name))
			}
		}
	}
	slices.Sort(files)
	return files, nil
}

var goLine = regexp.MustCompile(`(?m)^go (\S+)$`)

// Digest returns the SHA-256, in hex, of the sources and of the Go version in
// go.mod. "\r\n" counts as "\n", because a checkout may convert line ends.
func Digest(root string) (string, error) {
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return "", err
	}
	version := goLine.FindSubmatch(mod)
	if version == nil {
		return "", fmt.Errorf("digest sources: go.mod has no go line")
	}
	files, err := Sources(root)
	if err != nil {
		return "", fmt.Errorf("digest sources: %w", err)
	}
	h := sha256.New()
	fmt.Fprintf(h, "go %s\n", version[1])
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return "", fmt.Errorf("digest sources: %w", err)
		}
		text = []byte(strings.ReplaceAll(string(text), "\r\n", "\n"))
		fmt.Fprintf(h, "%s %d\n", name, len(text))
		h.Write(text)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
