package guest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A Sum is the content of builtin.sum.
type Sum struct {
	Module  string // SHA-256 of the module
	Sources string // see [Digest]
	Go      string // Go version that built the module
}

// ReadSum reads builtin.sum.
func ReadSum(root string) (Sum, error) {
	text, err := os.ReadFile(sumFile(root))
	if err != nil {
		return Sum{}, err
	}
	var s Sum
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		key, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case ok && key == "module":
			s.Module = value
		case ok && key == "sources":
			s.Sources = value
		case ok && key == "go":
			s.Go = value
		default:
			return Sum{}, fmt.Errorf("read builtin.sum: unknown line %q", line)
		}
	}
	return s, nil
}

// ModuleSum returns the SHA-256 of a module in hex.
func ModuleSum(module []byte) string {
	sum := sha256.Sum256(module)
	return hex.EncodeToString(sum[:])
}

// Write writes the module and builtin.sum.
func Write(root string, module []byte, s Sum) error {
	if err := writeAtomic(moduleFile(root), module); err != nil {
		return err
	}
	text := fmt.Sprintf("module %s\nsources %s\ngo %s\n", s.Module, s.Sources, s.Go)
	return writeAtomic(sumFile(root), []byte(text))
}

// ReadModule reads the module that [Write] wrote.
func ReadModule(root string) ([]byte, error) { return os.ReadFile(moduleFile(root)) }

func moduleFile(root string) string { return filepath.Join(root, "plugins", "builtin.wasm") }
func sumFile(root string) string    { return filepath.Join(root, "plugins", "builtin.sum") }

// writeAtomic writes a file atomically, because another build may read it at the
// same time.
func writeAtomic(name string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".build-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err := f.Write(content); err != nil {
		f.Close()
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
