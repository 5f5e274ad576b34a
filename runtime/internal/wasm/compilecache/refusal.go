package compilecache

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Refusal is a file in the cache that records that loading a module exceeded a
// limit: on compiling it, on compiling its schemas, or on describe. Without it every
// start of a program would spend that time on the same module again.
type Refusal struct {
	Time   time.Duration `json:"time"`             // limit on processor time
	Memory int64         `json:"memory,omitempty"` // limit on memory, in bytes
	Busy   bool          `json:"busy,omitempty"`   // the machine was busy: the refusal is valid for [BusyMaxAge]
	Error  *abi.Error    `json:"error"`
}

// refusalMaxAge is how long a refusal is valid. The cause may have been the machine,
// in a way that the host did not detect.
const refusalMaxAge = 24 * time.Hour

// BusyMaxAge is the same where the host detected that. Verbs that follow each other do not each spend the time again.
const BusyMaxAge = 10 * time.Minute

// DescribeRefusal is the file name of a refusal for describe.
const DescribeRefusal = "refused-describe.json"

// CompileRefusal returns the file name of a refusal for the code of a seal.
func CompileRefusal(seal string) string { return "refused-" + strings.TrimPrefix(seal, "sealed-") }

// RecordRefusal writes a refusal if err has code timeout or memory, and is permanent or the machine was busy.
// Errors are ignored: a missing refusal costs time at the next start.
func (c *Cache) RecordRefusal(digest, name string, r Refusal, err error) {
	r.Error = abi.As(err)
	if r.Error == nil || !r.Error.Permanent && !r.Busy || r.Error.Code != abi.Timeout && r.Error.Code != abi.Memory {
		return
	}
	text, err := json.Marshal(r)
	if err != nil || os.MkdirAll(c.Dir(digest), 0o700) != nil {
		return
	}
	f, err := os.CreateTemp(c.Dir(digest), "refusal-")
	if err != nil {
		return
	}
	_, err = f.Write(text)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(c.Dir(digest), name))
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
}

// CheckRefusal returns the error of a valid refusal. A refusal with lower limits than
// the current ones is not valid.
func (c *Cache) CheckRefusal(digest, name string, limits Refusal) error {
	path := filepath.Join(c.Dir(digest), name)
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	age := time.Since(info.ModTime())
	text, err := regularfile.Read(path, regularfile.Unlimited)
	var r Refusal
	if err != nil || json.Unmarshal(text, &r) != nil || r.Error == nil || r.Time < limits.Time || r.Memory < limits.Memory ||
		age > refusalMaxAge || r.Busy && age > BusyMaxAge {
		return nil
	}
	return r.Error
}
