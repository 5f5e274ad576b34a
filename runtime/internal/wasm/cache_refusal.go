package wasm

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A refusal remembers that loading a module took more than it may: compiling it,
// compiling its schemas, or executing describe. Without it every start of a program
// would spend that time on the same module again.
type refusal struct {
	Time   time.Duration `json:"time"`             // of a processor, that it was given
	Memory int64         `json:"memory,omitempty"` // likewise, bytes
	Error  *abi.Error    `json:"error"`
}

// refusalAge is how long a refusal counts: the machine may have been at fault in
// a way that the host did not see.
const refusalAge = 24 * time.Hour

// describeRefusal is the name of a refusal because of describe.
const describeRefusal = "refused-describe.json"

// compileRefusal is beside the seal that the module does not have.
func compileRefusal(seal string) string { return "refused-" + strings.TrimPrefix(seal, "sealed-") }

// refuse keeps a refusal if err is one: a permanent error for want of time or
// memory. A refusal that cannot be written costs time at the next start, nothing else.
func (c *cache) refuse(digest, name string, r refusal, err error) {
	r.Error = abi.As(err)
	if r.Error == nil || !r.Error.Permanent || r.Error.Code != abi.Timeout && r.Error.Code != abi.Memory {
		return
	}
	text, err := json.Marshal(r)
	if err != nil || os.MkdirAll(c.dir(digest), 0o700) != nil {
		return
	}
	f, err := os.CreateTemp(c.dir(digest), "refusal-")
	if err != nil {
		return
	}
	_, err = f.Write(text)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(c.dir(digest), name))
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
}

// refused returns the error of a refusal that still counts: one for less time or
// memory than there is now does not.
func (c *cache) refused(digest, name string, now refusal) error {
	path := filepath.Join(c.dir(digest), name)
	info, err := os.Stat(path)
	if err != nil || time.Since(info.ModTime()) > refusalAge {
		return nil
	}
	text, err := os.ReadFile(path)
	var r refusal
	if err != nil || json.Unmarshal(text, &r) != nil || r.Error == nil || r.Time < now.Time || r.Memory < now.Memory {
		return nil
	}
	return r.Error
}
