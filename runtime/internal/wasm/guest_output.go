package wasm

import (
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// outputTail receives what a guest writes to stdout or stderr. It keeps the last
// maxTail bytes, and counts all bytes against Limits.LogBytes.
type outputTail struct {
	inst *instance
	tail []byte
}

// maxTail is how many bytes of a stream are kept.
const maxTail = 4 << 10

func (t *outputTail) Write(p []byte) (int, error) {
	c := t.inst.current
	c.checkEnded()
	if c.written += len(p); c.written > c.limits.LogBytes {
		c.unwind(abi.New(abi.Limit, fmt.Sprintf("the plugin wrote more than %d bytes to stdout and stderr", c.limits.LogBytes)))
	}
	t.tail = append(t.tail, p[max(0, len(p)-maxTail):]...)
	if over := len(t.tail) - maxTail; over > 0 {
		t.tail = append(t.tail[:0], t.tail[over:]...)
	}
	return len(p), nil
}

// String returns the kept bytes, with invalid UTF-8 replaced.
func (t *outputTail) String() string { return strings.ToValidUTF8(string(t.tail), "\ufffd") }
