package abitest

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// bulkMemory is the memory that the guests of bulk need, in bytes.
const bulkMemory = 64 << 20

// bulk are guests that copy memory in straight-line code, without loops and calls, where
// an engine may not be able to interrupt it. They keep a host that cannot interrupt
// them busy for a minute or more.
func bulk() []HostileGuest {
	const size = 60_000_000
	fill := i32(0) + i32(7) + i32(size) + "\xfc\x0b\x00"
	copies := i32(1<<20) + i32(0) + i32(size) + "\xfc\x0a\x00\x00"
	blocks := "\x42" + sleb(size) + "\x10\x00\x10\x04" // free(alloc(size))
	random := i32(1<<20) + i32(size) + "\x10\x03\x1a"  // random_get(1 MiB, size)
	guest := func(name, behavior string, at Stage, words string, describe, run string) HostileGuest {
		return HostileGuest{Name: name, Clause: "A8.3", Behavior: behavior, At: at, Code: abi.Timeout, Words: words,
			Module: func() []byte { return []byte(straight(manifest(name, `{"type":"object"}`), describe, run)) }}
	}
	return []HostileGuest{
		guest("bulk_describe", "fills 60 MB of memory 10,000 times in describe, without a loop", AtLoad, "time", strings.Repeat(fill, 10_000), ""),
		guest("bulk_fill", "fills 60 MB of memory 10,000 times, without a loop", AtRun, "computed", "", strings.Repeat(fill, 10_000)),
		guest("bulk_copy", "copies 60 MB of memory 10,000 times, without a loop", AtRun, "computed", "", strings.Repeat(copies, 10_000)),
		guest("bulk_blocks", "allocates a block of 60 MB and frees it 10,000 times, without a loop", AtRun, "computed", "", strings.Repeat(blocks, 10_000)),
		guest("bulk_random", "asks for 60 MB of random bytes 1,000 times, without a loop", AtRun, "computed", "", strings.Repeat(random, 1_000)),
	}
}

// manifest is that of a plugin with one step type, both with the same name.
func manifest(name, fields string) string {
	return fmt.Sprintf(`{"name":%q,"version":"1","abi":1,"steps":[{"type":%[1]q,"summary":%[1]q,"fields":%s}]}`, name, fields)
}

// straight is a plugin that executes code at the start of describe and in run.
func straight(manifest, describe, run string) string {
	const at = 1024 // where the manifest is
	imports := func(module, name string, typ byte) string { return sized(module) + sized(name) + "\x00" + string(typ) }
	const kernel = "extism:host/env"
	n := len(manifest)
	body := describe +
		"\x42" + sleb(n) + "\x10\x00\x21\x00" + // h = alloc(n)
		"\x03\x40" + // for i = 0; i < n; i++ { store_u8(h+i, memory[at+i]) }
		"\x20\x00\x20\x01\xad\x7c" + "\x20\x01\x2d\x00" + leb(at) + "\x10\x01" +
		"\x20\x01\x41\x01\x6a\x22\x01" + i32(n) + "\x49\x0d\x00" +
		"\x0b" +
		"\x20\x00\x42" + sleb(n) + "\x10\x02" // output_set(h, n)
	return "\x00asm\x01\x00\x00\x00" +
		section(1, vector(6, "\x60\x01\x7e\x01\x7e"+"\x60\x02\x7e\x7f\x00"+"\x60\x02\x7e\x7e\x00"+"\x60\x00\x01\x7f"+"\x60\x02\x7f\x7f\x01\x7f"+"\x60\x01\x7e\x00")) +
		section(2, vector(5, imports(kernel, "alloc", 0)+imports(kernel, "store_u8", 1)+imports(kernel, "output_set", 2)+
			imports("wasi_snapshot_preview1", "random_get", 4)+imports(kernel, "free", 5))) +
		section(3, vector(2, "\x03\x03")) +
		section(5, vector(1, "\x00"+leb(bulkMemory>>16))) +
		section(7, vector(2, sized("describe")+"\x00\x05"+sized("run")+"\x00\x06")) +
		section(10, vector(2, sized("\x02\x01\x7e\x01\x7f"+body+"\x41\x00\x0b")+sized("\x00"+run+"\x41\x00\x0b"))) +
		section(11, vector(1, "\x00"+i32(at)+"\x0b"+sized(manifest)))
}

// i32 is the instruction i32.const.
func i32(n int) string { return "\x41" + sleb(n) }

// sleb encodes a non-negative number as signed LEB128.
func sleb(n int) string {
	var b []byte
	for n >= 0x40 {
		b = append(b, byte(n&0x7f|0x80))
		n >>= 7
	}
	return string(binary.AppendUvarint(b, uint64(n)))
}
