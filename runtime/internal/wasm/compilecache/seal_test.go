package compilecache_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/compilecache"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// codeFile is the path of a compiled file as the engine names it.
var codeFile = filepath.Join("engine-1", strings.Repeat("ab", 32))

// writeCode stands for the engine: it writes one file of code.
func writeCode(_ context.Context, dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, "engine-1"), 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, codeFile), []byte("machine code"), 0o600)
}

// open returns a cache with the sealed code of one module, and the name of the seal.
func open(t *testing.T, digest string) (c *compilecache.Cache, seal string) {
	t.Helper()
	c, err := compilecache.Open(filepath.Join(t.TempDir(), "cache"), writeCode)
	if err != nil {
		t.Fatal(err)
	}
	if seal, err = c.SealName([]byte("module")); err != nil {
		t.Fatal(err)
	}
	temp, err := c.TempDir()
	if err != nil {
		t.Fatal(err)
	}
	if err := writeCode(t.Context(), temp); err != nil {
		t.Fatal(err)
	}
	if err := c.Install(temp, digest, seal); err != nil {
		t.Fatal(err)
	}
	return c, seal
}

// TestSeal: sealed code is found, and code that has changed is deleted.
func TestSeal(t *testing.T) {
	c, seal := open(t, "d1")
	if ok, damage := c.Verify("d1", seal); !ok || damage != nil {
		t.Fatalf("sealed code: %t, %v", ok, damage)
	}
	if ok, damage := c.Verify("d2", seal); ok || damage != nil {
		t.Errorf("a module that is not in the cache: %t, %v", ok, damage)
	}
	if ok, damage := c.Verify("d1", "another"+seal); ok || damage != nil {
		t.Errorf("code of another release: %t, %v", ok, damage)
	}
	if err := os.WriteFile(filepath.Join(c.Dir("d1"), codeFile), []byte("machine Code"), 0o600); err != nil {
		t.Fatal(err)
	}
	if ok, damage := c.Verify("d1", seal); ok || damage == nil || !strings.Contains(damage.Error(), "has changed") {
		t.Errorf("damaged code: %t, %v", ok, damage)
	}
	if _, err := os.Stat(c.Dir("d1")); !os.IsNotExist(err) {
		t.Errorf("damaged code was not deleted: %v", err)
	}
}

// TestRefusal: a permanent timeout is remembered for limits up to its own.
func TestRefusal(t *testing.T) {
	c, seal := open(t, "d1")
	name := compilecache.CompileRefusal(seal)
	limits := compilecache.Refusal{Time: time.Second, Memory: 100}
	c.RecordRefusal("d1", name, limits, abi.New(abi.Timeout, "the machine was busy"))
	c.RecordRefusal("d1", name, limits, &abi.Error{Code: abi.BadFields, Permanent: true})
	if err := c.CheckRefusal("d1", name, limits); err != nil {
		t.Errorf("an error that says nothing about the next load is remembered: %v", err)
	}
	c.RecordRefusal("d1", name, limits, &abi.Error{Code: abi.Timeout, Message: "too slow", Permanent: true})
	for _, lower := range []compilecache.Refusal{limits, {Time: time.Millisecond, Memory: 100}, {Time: time.Second, Memory: 10}} {
		if err := c.CheckRefusal("d1", name, lower); err == nil || err.Error() != "too slow" {
			t.Errorf("limits %+v: %v, want the refusal", lower, err)
		}
	}
	for _, higher := range []compilecache.Refusal{{Time: time.Minute, Memory: 100}, {Time: time.Second, Memory: 101}} {
		if err := c.CheckRefusal("d1", name, higher); err != nil {
			t.Errorf("limits %+v: %v, want another attempt", higher, err)
		}
	}
}
