// Command build builds the module of the built-in step types and writes it where
// package plugins embeds it.
//
//	go run ./plugins/internal/build           build and write
//	go run ./plugins/internal/build -verify   build and compare, write nothing
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"

	"github.com/sentinel-runtime/sentinel/plugins/internal/guest"
)

func main() {
	verify := flag.Bool("verify", false, "compare a new build with the stored module, write nothing")
	flag.Parse()
	command := build
	if *verify {
		command = verifyModule
	}
	if err := command(); err != nil {
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
	s.Module = guest.ModuleSum(module)
	if err := guest.Write(root, module, s); err != nil {
		return err
	}
	fmt.Printf("plugins/builtin.wasm: module of %d bytes, SHA-256 %s, %s\n", len(module), s.Module, s.Go)
	return nil
}

// verifyModule compares the stored module with the sources and with a new build.
// It skips the build if the Go version differs from that of the stored module: the
// version is part of the module, so the bytes would differ.
func verifyModule() error {
	root, err := guest.Root()
	if err != nil {
		return err
	}
	sum, err := guest.ReadSum(root)
	if err != nil {
		return err
	}
	sources, err := guest.Digest(root)
	if err != nil {
		return err
	}
	if sources != sum.Sources {
		return fmt.Errorf("the stored module was built from other sources: run make plugins")
	}
	stored, err := guest.ReadModule(root)
	if err != nil {
		return err
	}
	if guest.ModuleSum(stored) != sum.Module {
		return fmt.Errorf("builtin.wasm and builtin.sum do not match: run make plugins")
	}
	version, err := guest.GoVersion(root)
	if err != nil {
		return err
	}
	if version != sum.Go {
		fmt.Printf("skipped the build: the stored module was built with %s, this is %s\n", sum.Go, version)
		return nil
	}
	module, err := guest.Compile(root)
	if err != nil {
		return err
	}
	if !bytes.Equal(module, stored) {
		return fmt.Errorf("a build with %s differs from the stored module: SHA-256 %s, stored %s", version, guest.ModuleSum(module), sum.Module)
	}
	fmt.Printf("the stored module matches a build of these sources with %s\n", version)
	return nil
}
