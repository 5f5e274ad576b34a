package runtime_test

import (
	"os"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime"
)

// TestMain lets this test program be started again as the child that evaluates
// slow conditions.
func TestMain(m *testing.M) {
	runtime.ServeChild()
	os.Exit(m.Run())
}
