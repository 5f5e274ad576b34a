package foldersync_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/foldersync"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// held is a lock with one entry.
type held struct {
	mu     sync.Mutex
	digest string // that count.wasm must have, "" for any
}

func (h *held) set(code []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.digest = ""
	if code != nil {
		sum := sha256.Sum256(code)
		h.digest = hex.EncodeToString(sum[:])
	}
}

func (h *held) Check(file, digest string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if file != "count.wasm" || h.digest == "" || h.digest == digest {
		return nil
	}
	return &abi.Error{Code: abi.Denied, Message: "it is " + digest + ", not " + h.digest, Hint: "unlock it"}
}

// TestLock: a file that is not what was installed is refused with both digests,
// the version before it goes on serving, and unlocking needs no new file.
func TestLock(t *testing.T) {
	h := new(held)
	v1 := other(t)
	v2 := []byte(strings.Replace(string(v1), `"version":"1"`, `"version":"2"`, 1))
	h.set(v1)
	s := newScene(t)
	s.writePlugin("count.wasm", v1)
	s.writePlugin("plugins.lock.json", []byte("1"))
	s.beginWith(foldersync.Options{Lock: h})
	s.eventually("version 1 is live", func() bool { return s.info("plugins/count.wasm").State == foldersync.Live })

	s.writePlugin("count.wasm", v2)
	s.invalid("plugins/count.wasm", h.digest)
	if got := s.info("plugins/count.wasm").Problems[0]; got.Hint != "unlock it" || !strings.Contains(got.Message, s.info("plugins/count.wasm").Digest) {
		t.Errorf("the problem is %+v", got)
	}
	version := func() string {
		for _, p := range s.rt.Plugins() {
			if p.Source == "count.wasm" {
				return p.Version
			}
		}
		return ""
	}
	if version() != "1" {
		t.Errorf("version %q serves, want the one that was installed", version())
	}
	h.set(nil)
	s.writePlugin("plugins.lock.json", []byte("2"))
	s.eventually("version 2 is live", func() bool { return version() == "2" && s.info("plugins/count.wasm").State == foldersync.Live })

	// A lock that changes later takes nothing down that is live.
	h.set(v1)
	s.writePlugin("plugins.lock.json", []byte("3"))
	s.write("sentinels/a.json", `{"id":"a","name":"a","steps":[{"type":"count"}]}`)
	s.live("sentinels/a.json", "a", 1)
	if version() != "2" {
		t.Errorf("version %q serves", version())
	}
}
