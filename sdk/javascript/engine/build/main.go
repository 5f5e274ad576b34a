// Build builds the engine of JavaScript plugins, engine.wasm.gz, from the source of QuickJS
// in Debian 13 and from glue.c and prelude.js:
//
//	go run ./sdk/javascript/engine/build
//
// It needs apt-get, tar and clang with the C library of wasm32-wasi, on Debian:
// apt-get install -y clang lld wasi-libc libclang-rt-14-dev-wasm32. The source is
// fetched once, checked against the digest below and kept in the user's cache.
//
// With -check it writes nothing: it builds the engine and compares it with the committed
// one. If the tools are not those in engine.sum, it reports that instead.
package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sentinel-runtime/sentinel/sdk/javascript"
)

func main() {
	check := flag.Bool("check", false, "compare with the committed engine instead of writing it")
	dir := flag.String("C", "sdk/javascript/engine", "the folder of glue.c")
	flag.Parse()
	if err := run(*dir, *check); err != nil {
		fmt.Fprintln(os.Stderr, "build engine:", err)
		os.Exit(1)
	}
}

func run(dir string, check bool) error {
	noted, err := javascript.ReadSum(dir)
	if err != nil && (check || !os.IsNotExist(err)) {
		return err
	}
	tools, err := toolVersions()
	if err != nil {
		return err
	}
	if check && tools != noted.Tools {
		fmt.Printf("SKIPPED: the engine is not compared, it was built with\n  %s\nand here is\n  %s\n", noted.Tools, tools)
		return nil
	}
	source, err := fetch()
	if err != nil && check && errors.Is(err, errNoSource) {
		// An unreachable mirror is not an error of the committed engine.
		fmt.Printf("SKIPPED: the engine is not compared: %v\n", err)
		return nil
	}
	if err != nil {
		return err
	}
	engine, err := compile(dir, source)
	if err != nil {
		return err
	}
	sum := javascript.Sum{Source: "quickjs " + version + " sha256:" + digest, Tools: tools, Engine: javascript.Digest(engine)}
	if sum.Glue, err = javascript.GlueDigest(os.DirFS(dir)); err != nil {
		return err
	}
	if check {
		if sum != noted {
			return fmt.Errorf("the committed engine differs from the build of its sources:\n%s\nengine.sum has\n%s", sum, noted)
		}
		fmt.Printf("the engine is what its sources make, %d bytes\n", len(engine))
		return nil
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err = z.Write(engine); err == nil {
		err = z.Close()
	}
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "engine.wasm.gz"), packed.Bytes(), 0o644); err != nil { //nolint:gosec // committed, readable for all users
		return err
	}
	fmt.Printf("engine.wasm.gz: %d bytes, %d unpacked\n", packed.Len(), len(engine))
	return os.WriteFile(filepath.Join(dir, "engine.sum"), []byte(sum.String()), 0o644) //nolint:gosec // likewise
}
