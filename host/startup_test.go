package host_test

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/plugins"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// initBytes are the packages of this module that may allocate more than maxInitBytes
// while they are initialized, with their limit in bytes and the reason.
var initBytes = map[string]struct {
	limit int
	why   string
}{
	"sentinels":             {64 << 10, "the tables of the format, which most verbs use"},
	"runtime/retry":         {16 << 10, "the texts of its patterns, which are put together from alternatives"},
	"runtime/internal/cond": {16 << 10, "sets of words of JavaScript"},
	// Whichever of these two is initialized first makes the table.
	"runtime/internal/store":             {12 << 10, "the table of CRC-32C"},
	"runtime/internal/wasm/compilecache": {12 << 10, "the table of CRC-32C"},
}

// maxInitBytes limits the others. It has room for small maps and errors, and none for a
// regular expression with a class of Unicode or a schema.
const maxInitBytes = 8 << 10

// maxInitTotal limits all packages together, in bytes, 1.7 MB of which are the
// metaschemas of the schema library. It is less than what makes the garbage collector
// start, 4 MB.
const maxInitTotal = 3 << 20

var initLine = regexp.MustCompile(`(?m)^init (\S+) @\S+ ms, \S+ ms clock, (\d+) bytes, \d+ allocs$`)

// TestStartDoesLittle fails if the packages of this module compute tables before main,
// which each verb of the program then waits for. It counts allocations, because they are
// the same on a fast and a slow machine.
func TestStartDoesLittle(t *testing.T) {
	program := filepath.Join(t.TempDir(), "sentinel")
	if out, err := exec.Command("go", "build", "-o", program, module+"host/cmd/sentinel").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	cmd := exec.Command(program, "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace bytes.Buffer
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		t.Fatalf("sentinel version: %v\n%s", err, trace.Bytes())
	}
	total, own := 0, 0
	for lines := bufio.NewScanner(&trace); lines.Scan(); {
		m := initLine.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		bytes, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(err)
		}
		total += bytes
		pkg, ok := strings.CutPrefix(m[1], module)
		if !ok {
			continue
		}
		own++
		limit := maxInitBytes
		if allowed, ok := initBytes[pkg]; ok {
			limit = allowed.limit
		}
		if bytes > limit {
			t.Errorf("package %s allocates %d bytes while it is initialized, the limit is %d: compute the value when it is first used, with sync.OnceValue or internal/lazyregexp", pkg, bytes, limit)
		}
	}
	if own < 20 {
		t.Fatalf("only %d packages of this module in the trace:\n%s", own, trace.Bytes())
	}
	if total > maxInitTotal {
		t.Errorf("all packages together allocate %d bytes while they are initialized, the limit is %d", total, maxInitTotal)
	}
}

// TestOpenLoadsNoModule: a host knows the built-in step types when it opens, and loads their module,
// which is most of the processor time of a short program, for the first step alone. Its code is then
// in the store, where a later release finds it for a step that this one parked.
func TestOpenLoadsNoModule(t *testing.T) {
	state, workspace := t.TempDir(), t.TempDir()
	h := open(t, host.Options{State: state, Workspace: workspace})
	digest, _ := plugins.Manifest()
	kept := filepath.Join(state, "blobs", digest[:2], digest[2:])
	if _, err := h.Call(t.Context(), "sentinel/list", nil); err != nil {
		t.Fatal(err)
	}
	list := h.Runtime().Plugins()
	if len(list) != 1 || list[0].Digest != digest || len(list[0].Types) < 10 {
		t.Errorf("plugins %+v, want the built-in one with its digest and step types", list)
	}
	if _, err := os.Stat(kept); err == nil {
		t.Error("a host that has executed no step has loaded the module of the built-in step types")
	}
	if res := run(t, h, `{"name":"one","steps":[{"type":"set","values":{"a":1}}]}`, workspace); res.Status != sentinels.StatusCompleted {
		t.Fatalf("run %s: %v", res.Status, res.Error)
	}
	want, err := plugins.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(kept); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the code of the step that was executed is not in the store: %d bytes, %v", len(got), err)
	}
}
