// Command build makes the module of the built-in STEPS and stores it where
// package plugins embeds it.
//
//	go run ./plugins/internal/build           build and store
//	go run ./plugins/internal/build -verify   build and compare, store nothing
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"

	"github.com/sentinel-runtime/sentinel/plugins/internal/guest"
)

func main() {
	verify := flag.Bool("verify", false, "compare a new build with the stored module and change nothing")
	flag.Parse()
	work := build
	if *verify {
		work = compare
	}
	if err := work(); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}

func build() error {
	root, err := guest.Root()
	if err != nil {
		return err
	}
	s := guest.Sum{}
	if s.Go, err = guest.GoVersion(root); err != nil {
		return err
	}
	if s.Sources, err = guest.Digest(root); err != nil {
		return err
	}
	module, err := guest.Compile(root)
	if err != nil {
		return err
	}
	s.Module = guest.SumOf(module)
	if err := guest.Write(root, module, s); err != nil {
		return err
	}
	fmt.Printf("plugins/builtin.wasm.gz: %d bytes of module, sha256 %s, %s\n", len(module), s.Module, s.Go)
	return nil
}

// compare is for the Go version that built the stored module: the version is
// inside the module, so another one cannot give the same bytes.
func compare() error {
	root, err := guest.Root()
	if err != nil {
		return err
	}
	noted, err := guest.Noted(root)
	if err != nil {
		return err
	}
	sources, err := guest.Digest(root)
	if err != nil {
		return err
	}
	if sources != noted.Sources {
		return fmt.Errorf("the module is not of these sources: run make plugins")
	}
	stored, err := guest.Stored(root)
	if err != nil {
		return err
	}
	if guest.SumOf(stored) != noted.Module {
		return fmt.Errorf("builtin.wasm.gz and builtin.sum do not belong together: run make plugins")
	}
	version, err := guest.GoVersion(root)
	if err != nil {
		return err
	}
	if version != noted.Go {
		fmt.Printf("skipped the comparison of bytes: the module was built with %s, this is %s\n", noted.Go, version)
		return nil
	}
	module, err := guest.Compile(root)
	if err != nil {
		return err
	}
	if !bytes.Equal(module, stored) {
		return fmt.Errorf("%s gives other bytes than the stored module: sha256 %s, stored %s", version, guest.SumOf(module), noted.Module)
	}
	fmt.Printf("the stored module is what %s makes of these sources\n", version)
	return nil
}
