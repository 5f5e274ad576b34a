package guest_test

import (
	"os"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime/guest"
)

// TestMain lets this test program be the child process that compiles plugins.
func TestMain(m *testing.M) {
	guest.ServeChild()
	os.Exit(m.Run())
}
