package runtime_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// cacheDir is shared by all tests of one process and gone after it.
var cacheDir string

// TestMain lets this test program be started again as the child that evaluates
// slow conditions.
func TestMain(m *testing.M) {
	runtime.ServeChild()
	fullDiskMain()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if cacheDir, err = os.MkdirTemp("", "sentinel-runtime-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	defer os.RemoveAll(cacheDir)
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// codeOf is the code of an error, "" for none.
func codeOf(err error) string {
	if err == nil {
		return ""
	}
	return string(abi.CodeOf(err))
}
