//go:build unix

package shell_test

import (
	"bufio"
	"fmt"
	"os"
	"testing"
)

// TestMain lets the test program be the programs it starts.
func TestMain(m *testing.M) {
	switch os.Getenv("SHELL_TEST_HELPER") {
	case "flood":
		w := bufio.NewWriter(os.Stdout)
		for i := range 100_000 {
			fmt.Fprintln(w, floodLine(i, 100))
		}
		if err := w.Flush(); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	case "host":
		helperHost()
	}
	os.Exit(m.Run())
}
