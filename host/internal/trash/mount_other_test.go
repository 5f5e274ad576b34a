//go:build unix && !linux

package trash_test

import "testing"

func mount(t *testing.T, _ string) { t.Skip("only mounted on Linux") }
