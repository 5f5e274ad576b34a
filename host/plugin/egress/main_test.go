package egress_test

import (
	"os"
	"testing"
)

// TestMain names a proxy that is none: net/http reads the environment once in
// a process, and a client that asked it would fail in every test.
func TestMain(m *testing.M) {
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"} {
		os.Setenv(name, "http://127.0.0.1:1")
	}
	os.Exit(m.Run())
}
