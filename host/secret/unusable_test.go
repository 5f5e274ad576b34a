//go:build unix

package secret_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/secret"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

func TestUnusable(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	s, _ := source(secret.Places{
		"OPEN": {File: write(t, "value-of-open-file", 0o640)}, "GONE": {File: "/nowhere/at/all"}, "PIPE": {File: pipe}, "DIR": {File: t.TempDir()},
		"SHORT": {Env: "SHORT"}, "LONG": {File: write(t, strings.Repeat("v", 16<<10+1), 0o600)}, "BINARY": {File: write(t, "value\xff-of-binary", 0o600)},
		"ZERO": {File: write(t, "value\x00-of-zero", 0o600)}, "EMPTY": {File: write(t, "\n\n", 0o600)}, "UNSET": {Env: "UNSET"},
	}, map[string]string{"SHORT": "1234567", "SENTINEL_SECRET_UNSET": "must-not-be-taken", "SENTINEL_SECRET_lower": "value-of-lower"})
	for name, want := range map[string]struct {
		code abi.Code
		say  string
	}{
		"OPEN": {abi.Denied, "others may read"}, "GONE": {abi.NotFound, "no value"}, "PIPE": {abi.Denied, "not in a regular file"}, "DIR": {abi.Denied, "not in a regular file"},
		"SHORT": {abi.Denied, "too short"}, "LONG": {abi.Denied, "16 KiB"}, "BINARY": {abi.Denied, "not text"}, "ZERO": {abi.Denied, "not text"},
		"EMPTY": {abi.NotFound, "no value"}, "UNSET": {abi.NotFound, "no value"}, "NONE": {abi.NotFound, "SENTINEL_SECRET_NONE"}, "lower": {abi.BadFields, "no name"},
	} {
		_, err := s.Value(name)
		e := abi.As(err)
		if e == nil || e.Code != want.code || !strings.Contains(e.Message+e.Hint, want.say) || !e.Permanent {
			t.Errorf("%s: %+v, want %s and %q", name, e, want.code, want.say)
			continue
		}
		for _, leak := range []string{"1234567", "value-of", "vvvv", "/nowhere", pipe} {
			if strings.Contains(e.Message+e.Hint, leak) {
				t.Errorf("%s: %+v tells %q", name, e, leak)
			}
		}
	}
}
