package serve_test

import (
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime"
)

func TestMain(m *testing.M) {
	runtime.ServeChild() // conditions and checks of the store run in a child of this program
	m.Run()
}
