package javascript

import (
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// headSize is the size of the fields before the texts in struct script of glue.c: the
// linked host functions, the size of the name, the size of the source.
const headSize = 12

// Module returns the plugin with the script source. name is that of the file in stack
// traces.
//
// The engine imports every host function, but a plugin may import only the ones that it
// requests. So the import of a function that needs a grant is kept only if the script has
// its use literally, use: "http"; the others are replaced by a kernel function with the
// same type, which keeps every index in the code.
func Module(name string, source []byte) ([]byte, error) {
	packed, err := engine()
	if err != nil {
		return nil, err
	}
	m, err := parseModule(packed)
	if err != nil {
		return nil, fmt.Errorf("read engine: %w", err)
	}
	source = slices.Clone(source)
	switch {
	case strings.ContainsRune(name, 0) || name == "":
		return nil, fmt.Errorf("pack script %q: the name is empty or has a NUL", name)
	case !utf8.Valid(source):
		return nil, fmt.Errorf("pack script %q: it is not UTF-8", name)
	}
	address, err := m.address("sentinel_script")
	if err != nil {
		return nil, err
	}
	capacity, err := m.word("sentinel_script_capacity")
	if err != nil {
		return nil, err
	}
	// Both texts end with a NUL, because the engine's reader reads one byte ahead.
	if need, most := len(name)+len(source)+2, int(capacity); need > most {
		return nil, fmt.Errorf("pack script %q: %d bytes are too many, the limit is %d; minify the bundle or move data into the step's fields",
			name, len(source), most-len(name)-2)
	}
	linked := links(source)
	if err := m.unlink(linked); err != nil {
		return nil, err
	}
	head := make([]byte, headSize, headSize+len(name)+len(source)+2)
	binary.LittleEndian.PutUint32(head, linked)
	binary.LittleEndian.PutUint32(head[4:], uint32(len(name)+1))
	binary.LittleEndian.PutUint32(head[8:], uint32(len(source)))
	head = append(append(append(append(head, name...), 0), source...), 0)
	if err := m.addData(address, head); err != nil {
		return nil, err
	}
	return m.bytes(), nil
}

// asked finds the word in {use: "http"}, with any quotes of JavaScript.
var asked = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\buse["']?\s*:\s*["'` + "`]([a-z]+)[\"'`]")
})

// links returns the host functions of a script, the n-th of [abi.Funcs] as bit n: those
// without a grant, and those that it requests.
func links(source []byte) uint32 {
	uses := map[abi.Use]bool{}
	for _, m := range asked().FindAllSubmatch(source, -1) {
		uses[abi.Use(m[1])] = true
	}
	var linked uint32
	for n, name := range abi.Funcs() {
		if use, guarded := abi.UseOf(name); !guarded || uses[use] {
			linked |= 1 << n
		}
	}
	return linked
}

// unlink replaces the imports of the functions that are not linked.
func (m *module) unlink(linked uint32) error {
	functions := abi.Funcs()
	found := 0
	for i, im := range m.imports {
		if im.module != abi.Namespace {
			continue
		}
		n := slices.Index(functions, im.name)
		if n < 0 {
			return fmt.Errorf("read engine: import %q is not a host function", im.name)
		}
		found++
		if linked>>n&1 == 0 {
			m.imports[i].module, m.imports[i].name = "extism:host/env", "length" // (i64) -> i64 as well
		}
	}
	if found != len(functions) {
		return fmt.Errorf("read engine: %d host functions are imported, %d exist; build the engine again", found, len(functions))
	}
	return nil
}

// address returns the address of an exported object of the engine.
func (m *module) address(name string) (uint32, error) {
	n, ok := m.exported[name]
	if !ok || int(n) >= len(m.globals) {
		return 0, fmt.Errorf("read engine: no object %q is exported", name)
	}
	return m.globals[n], nil
}

// word returns the first four bytes of an exported object.
func (m *module) word(name string) (uint32, error) {
	at, err := m.address(name)
	if err != nil {
		return 0, err
	}
	for _, s := range m.data {
		if at >= s.at && uint64(at)+4 <= uint64(s.at)+uint64(len(s.bytes)) {
			return binary.LittleEndian.Uint32(s.bytes[at-s.at:]), nil
		}
	}
	return 0, fmt.Errorf("read engine: object %q is not in its data", name)
}

// addData adds an active segment of memory 0. It must not overlap another segment: the
// engine has zeroes at that address.
func (m *module) addData(at uint32, b []byte) error {
	for _, s := range m.data {
		if uint64(at) < uint64(s.at)+uint64(len(s.bytes)) && uint64(s.at) < uint64(at)+uint64(len(b)) {
			return errors.New("pack script: its place in the engine is taken")
		}
	}
	m.data = append(m.data, segment{at: at, bytes: b})
	return nil
}
