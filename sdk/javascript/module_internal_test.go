package javascript

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestSum compares the committed engine and its sources in this repository with the digests
// in engine.sum. The build's -check compares it with a rebuild.
func TestSum(t *testing.T) {
	sum, err := ReadSum("engine")
	if err != nil {
		t.Fatal(err)
	}
	module, err := engine()
	if err != nil {
		t.Fatal(err)
	}
	if got := Digest(module); got != sum.Engine {
		t.Errorf("engine.wasm.gz holds %s, engine.sum says %s", got, sum.Engine)
	}
	glue, err := GlueDigest(os.DirFS("engine"))
	if err != nil {
		t.Fatal(err)
	}
	if glue != sum.Glue {
		t.Error("the engine's sources have changed since it was built: go run ./sdk/javascript/engine/build")
	}
}

func TestModuleSize(t *testing.T) {
	module, err := Module("plugin.js", bytes.Repeat([]byte(" "), 500<<10))
	if err != nil || len(module) < 1<<20 {
		t.Errorf("500 KiB: %d bytes, %v", len(module), err)
	}
	if _, err := Module("plugin.js", bytes.Repeat([]byte(" "), 512<<10)); err == nil || !strings.Contains(err.Error(), "minify") {
		t.Errorf("512 KiB: %v", err)
	}
	if _, err := Module("plugin.js", []byte{0xff}); err == nil || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("a byte that is not UTF-8: %v", err)
	}
	if _, err := Module("", nil); err == nil {
		t.Error("no name is taken")
	}
}

// TestLinks finds permissions in scripts, also after a bundler.
func TestLinks(t *testing.T) {
	const always = 1<<3 | 1<<4 | 1<<5 | 1<<8 | 1<<9 | 1<<11 | 1<<12
	for source, want := range map[string]uint32{
		``:                                    always,
		`permissions: [{use: "http", names}]`: always | 1<<10,
		`permissions:[{use:'command'},{"use":"llm"}]`: always | 1 | 2,
		"use :\n `folder`":                            always | 1<<13,
		`use: "nothing", reuse: "http"`:               always,
		`use: kind, http: "use"`:                      always,
	} {
		if got := links([]byte(source)); got != want {
			t.Errorf("%s: %014b, want %014b", source, got, want)
		}
	}
	if n := len(abi.Funcs()); n != 14 {
		t.Errorf("%d host functions, 14 are known to glue.c, prelude.js and testing.mjs", n)
	}
}

// FuzzModule checks that any bytes are read or refused, and written unchanged.
func FuzzModule(f *testing.F) {
	f.Add(header)
	f.Add([]byte("\x00asm\x01\x00\x00\x00\x02\x07\x01\x01a\x01b\x00\x00\x0b\x08\x01\x00\x41\x80\x7f\x0b\x01x"))
	f.Add([]byte("\x00asm\x01\x00\x00\x00\x06\x06\x01\x7f\x00\x41\x2a\x0b\x07\x05\x01\x01g\x03\x00\x0c\x01\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parseModule(b)
		if err != nil {
			return
		}
		again, err := parseModule(m.bytes())
		if err != nil {
			t.Fatalf("what was written is refused: %v", err)
		}
		if !bytes.Equal(again.bytes(), m.bytes()) {
			t.Error("written twice, it differs")
		}
	})
}
