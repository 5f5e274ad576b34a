package wasm

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A refusal remembers that compiling a module took more than it may. Without it
// every start of a program, and every look at a folder of plugins, would spend
// half a minute on the same module again.
type refusal struct {
	Time   time.Duration `json:"time"`   // of a processor, that it was given
	Memory int64         `json:"memory"` // likewise, bytes
	Error  *abi.Error    `json:"error"`
}

// refusalAge is how long a refusal counts: the machine may have been at fault in
// a way that nobody thought of.
const refusalAge = 24 * time.Hour

// refusalName is beside the seal that the module does not have.
func refusalName(seal string) string { return "refused-" + strings.TrimPrefix(seal, "sealed-") }

// refuse keeps a refusal, written by way of a folder of the same file system. One
// that cannot be kept costs time and nothing else.
func (c *cache) refuse(by, digest, seal string, r refusal) {
	text, err := json.Marshal(r)
	if err != nil {
		return
	}
	part := filepath.Join(by, "refusal")
	if os.WriteFile(part, text, 0o600) == nil && os.MkdirAll(c.dir(digest), 0o700) == nil {
		_ = os.Rename(part, filepath.Join(c.dir(digest), refusalName(seal)))
	}
}

// refused returns the error of a refusal that still counts: one for less time or
// memory than there is now does not.
func (c *cache) refused(digest, seal string, most time.Duration, memory int64) error {
	path := filepath.Join(c.dir(digest), refusalName(seal))
	info, err := os.Stat(path)
	if err != nil || time.Since(info.ModTime()) > refusalAge {
		return nil
	}
	text, err := os.ReadFile(path)
	var r refusal
	if err != nil || json.Unmarshal(text, &r) != nil || r.Error == nil || r.Time < most || r.Memory < memory {
		return nil
	}
	return r.Error
}
