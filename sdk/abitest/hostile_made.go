package abitest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// made are the hostile guests that are too large, or too broken, for a text.
func made() []HostileGuest { return slices.Concat(broken(), bulk(), schemas()) }

// broken are modules that must not load, and large ones that do no harm.
func broken() []HostileGuest {
	head := "\x00asm\x01\x00\x00\x00"
	refused := func(name, behavior string, code abi.Code, words string, module func() string) HostileGuest {
		return HostileGuest{Name: name, Clause: "A1", Behavior: behavior, At: AtLoad, Code: code, Words: words, Module: func() []byte { return []byte(module()) }}
	}
	plain := func(text string) func() string { return func() string { return text } }
	return []HostileGuest{
		// Files that are not modules.
		refused("empty_file", "has no bytes", abi.BadFields, "not a WebAssembly module", plain("")),
		refused("words_file", "is a shell script", abi.BadFields, "not a WebAssembly module", plain("#!/bin/sh\necho pwned\n")),
		refused("elf_file", "is a program of the system", abi.BadFields, "not a WebAssembly module", plain("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00")),
		refused("component", "is a component", abi.BadFields, "component", plain("\x00asm\x0d\x00\x01\x00\x00\x61\x10\x0e")),
		refused("version_2", "is of a format to come", abi.BadFields, "version 2", plain("\x00asm\x02\x00\x00\x00")),
		refused("empty_module", "has nothing in it", abi.BadFields, "no such export", plain(head)),
		refused("too_large", "has 33 MiB", abi.Limit, "bytes, at most", func() string { return head + strings.Repeat("\x00", 33<<20) }),
		// False counts, for which an engine may allocate memory.
		refused("locals_4g", "declares four billion locals", abi.BadFields, "locals", plain(head+"\x01\x04\x01\x60\x00\x00"+"\x03\x02\x01\x00"+"\x0a\x0a\x01\x08\x01\xff\xff\xff\xff\x0f\x7e\x0b")),
		refused("locals_groups", "declares locals in fifty thousand groups", abi.BadFields, "locals", func() string {
			return head + void + section(10, vector(1, sized(leb(60_000)+strings.Repeat("\x01\x7f", 60_000)+"\x0b")))
		}),
		refused("types_4g", "announces four billion types", abi.BadFields, "types", plain(head+"\x01\x05\xff\xff\xff\xff\x0f")),
		refused("imports_4g", "announces four billion imports", abi.BadFields, "imports", plain(head+"\x02\x05\xff\xff\xff\xff\x0f")),
		refused("exports_4g", "announces four billion exports", abi.BadFields, "exports", plain(head+"\x07\x05\xff\xff\xff\xff\x0f")),
		refused("globals_4g", "announces four billion globals", abi.BadFields, "globals", plain(head+"\x06\x05\xff\xff\xff\xff\x0f")),
		refused("elements_4g", "announces four billion elements", abi.BadFields, "elements", plain(head+"\x04\x04\x01\x70\x00\x01"+"\x09\x0a\x01\x00\x41\x00\x0b\xff\xff\xff\xff\x0f")),
		refused("data_4g", "announces a data segment of four gigabytes", abi.BadFields, "data segment", plain(head+"\x05\x03\x01\x00\x01"+"\x0b\x0a\x01\x00\x41\x00\x0b\xff\xff\xff\xff\x0f")),
		refused("bodies_4g", "announces four billion bodies", abi.BadFields, "function bodies", plain(head+"\x0a\x05\xff\xff\xff\xff\x0f")),
		refused("targets_4g", "announces four billion branch targets", abi.BadFields, "branch targets", plain(head+void+section(10, vector(1, sized("\x00\x41\x00\x0e\xff\xff\xff\xff\x0f\x00\x0b"))))),
		refused("parameters", "has a type of 100,000 parameters", abi.BadFields, "parameters", func() string {
			return head + section(1, vector(1, "\x60"+leb(100_000)+strings.Repeat("\x7f", 100_000)+"\x00"))
		}),
		refused("results", "has a type of 100,000 results", abi.BadFields, "results", func() string {
			return head + section(1, vector(1, "\x60\x00"+leb(100_000)+strings.Repeat("\x7f", 100_000)))
		}),
		refused("number_long", "writes a number in more bytes than there are", abi.BadFields, "out of range", plain(head+"\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")),
		refused("section_long", "has a section that is longer than the file", abi.BadFields, "byte", plain(head+"\x01\xff\x7f\x01")),
		refused("section_short", "has a section with trailing bytes", abi.BadFields, "too many", plain(head+"\x01\x03\x00\x00\x00")),
		refused("section_twice", "has a section twice", abi.BadFields, "repeated", plain(head+"\x01\x01\x00\x01\x01\x00")),
		refused("sections_empty", "is 16 million custom sections without content", abi.BadFields, "sections", func() string { return head + strings.Repeat("\x00", 31<<20) }),
		refused("sections_many", "has 5,000 custom sections", abi.BadFields, "sections", func() string { return head + strings.Repeat(section(0, sized("x")), 5_000) }),
		refused("section_unknown", "has a section of an unknown kind", abi.BadFields, "beyond WebAssembly 2.0", plain(head+"\x63\x01\x00")),
		refused("constant_endless", "has an initializer without an end", abi.BadFields, "", func() string {
			return head + section(6, vector(1, "\x7f\x00"+strings.Repeat("\x41\x00", 100_000)))
		}),
		refused("gc_types", "declares a structure of garbage collected memory", abi.BadFields, "beyond WebAssembly 2.0", plain(head+section(1, vector(1, "\x5f\x01\x7f\x01")))),
		refused("tags", "declares a tag of an exception", abi.BadFields, "beyond WebAssembly 2.0", plain(head+"\x01\x04\x01\x60\x00\x00"+"\x0d\x03\x01\x00\x00")),
		refused("table_64", "has a table of 64 bits", abi.BadFields, "beyond WebAssembly 2.0", plain(head+"\x04\x05\x01\x70\x05\x01\x01")),
		// Code that takes a long time to compile.
		refused("function_large", "has a function of a megabyte", abi.BadFields, "bytes, at most", func() string { return function(0, strings.Repeat("\x01", 1<<20)) }),
		refused("branch_table", "branches to 200,000 targets", abi.BadFields, "too long to compile", func() string {
			return function(0, "\x02\x40\x41\x00\x0e"+leb(200_000)+strings.Repeat("\x00", 200_000)+"\x00\x0b")
		}),
		refused("nested_blocks", "nests 50,000 blocks with a branch in each", abi.BadFields, "too long to compile", func() string {
			return function(0, strings.Repeat("\x02\x40", 50_000)+strings.Repeat("\x41\x00\x0d\x00\x0b", 50_000))
		}),
		refused("if_chain", "has 60,000 conditions in a row", abi.BadFields, "too long to compile", func() string { return function(0, strings.Repeat("\x41\x00\x04\x40\x0b", 60_000)) }),
		refused("loops_over_locals", "nests 300 loops over 4,000 locals", abi.BadFields, "too long to compile", func() string {
			var gets strings.Builder
			for i := range 4000 {
				gets.WriteString("\x20" + leb(i) + "\x1a")
			}
			return function(4000, strings.Repeat("\x03\x40", 300)+gets.String()+strings.Repeat("\x0b", 300))
		}),
		refused("functions_many", "has 300,000 functions", abi.BadFields, "functions", func() string {
			return head + "\x01\x04\x01\x60\x00\x00" + section(3, vector(300_000, strings.Repeat("\x00", 300_000))) + section(10, vector(300_000, strings.Repeat("\x02\x00\x0b", 300_000)))
		}),
		refused("exports_long", "has an export with a name of 30 KB", abi.BadFields, "name", func() string {
			return head + void + section(7, vector(1, sized(strings.Repeat("n", 30_000))+"\x00\x00"))
		}),
		refused("import_long", "has an import with a name of 30 KB", abi.BadFields, "name", func() string {
			return head + "\x01\x04\x01\x60\x00\x00" + section(2, vector(1, sized("env")+sized(strings.Repeat("n", 30_000))+"\x00\x00"))
		}),
		refused("names_bytes", "has an import with a name that is not UTF-8", anyCode, "", plain(head+"\x01\x04\x01\x60\x00\x00"+section(2, vector(1, sized("env")+sized("\xff\xfe\x00")+"\x00\x00")))),
		refused("imports_many", "imports 100,000 unknown functions", abi.BadFields, "imports, at most", func() string {
			var b strings.Builder
			for i := range 100_000 {
				b.WriteString(sized("env") + sized(fmt.Sprint("f", i)) + "\x00\x00")
			}
			return head + "\x01\x04\x01\x60\x00\x00" + section(2, vector(100_000, b.String()))
		}),
		refused("types_many", "has a million types", abi.BadFields, "types, at most", func() string {
			return head + section(1, vector(1_000_000, strings.Repeat("\x60\x00\x00", 1_000_000)))
		}),
		refused("exports_many", "exports the same function 200,000 times", abi.BadFields, "exports, at most", func() string {
			return head + void + section(7, vector(200_000, strings.Repeat(sized("run")+"\x00\x00", 200_000)))
		}),
		// Large modules that are harmless.
		harmless("custom_large", "has a custom section of 30 MiB", func(m string) string { return m + section(0, sized("junk")+strings.Repeat("j", 30<<20)) }),
		harmless("custom_names", "has a name section with functions that do not exist", func(m string) string {
			return m + section(0, sized("name")+"\x01\xff\xff\xff\xff\x0f"+strings.Repeat("\xff", 1000))
		}),
		harmless("custom_debug", "has invalid debug information", func(m string) string {
			return m + section(0, sized(".debug_info")+strings.Repeat("\xff", 100_000)) + section(0, sized(".debug_line")+strings.Repeat("\xfe", 100_000)) + section(0, sized(".debug_abbrev")+"\x00")
		}),
		harmless("custom_many", "has 4,000 custom sections", func(m string) string { return m + strings.Repeat(section(0, sized("x")), 4_000) }),
	}
}

// harmless is a valid guest with an addition.
func harmless(name, behavior string, change func(string) string) HostileGuest {
	return HostileGuest{
		Name: name, Clause: "A1", Behavior: behavior, At: AtRun, Output: "true",
		Module: func() []byte { return []byte(change(string(module("hostile/simd")))) },
	}
}

// void are a type section and a function section with one function () -> ().
const void = "\x01\x04\x01\x60\x00\x00" + "\x03\x02\x01\x00"

// function is a module of one function with i32 locals and code.
func function(locals int, code string) string {
	return "\x00asm\x01\x00\x00\x00" + void + section(10, vector(1, sized("\x01"+leb(locals)+"\x7f"+code+"\x0b")))
}

// section, vector and sized are the parts of the binary format.
func section(id byte, content string) string { return string([]byte{id}) + sized(content) }

func vector(n int, content string) string { return leb(n) + content }

func sized(content string) string { return leb(len(content)) + content }

// leb writes an unsigned number.
func leb(n int) string { return string(binary.AppendUvarint(nil, uint64(n))) }

// Truncated calls f with every beginning of a module that ends in the middle of
// a section or before all of its exports have code; none of them is a valid module.
func Truncated(f func(module []byte)) {
	whole := module("hostile/simd")
	// Without its last section, the data, it is a valid module with another output.
	data := 0
	for at := 8; at < len(whole); {
		size, n := binary.Uvarint(whole[at+1:])
		if whole[at] == 11 {
			data = at
		}
		at += 1 + n + int(size)
	}
	for n := range whole {
		if n != data {
			f(bytes.Clone(whole[:n]))
		}
	}
}
