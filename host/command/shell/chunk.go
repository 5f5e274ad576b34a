package shell

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
)

// A file of output is a header, then chunks. A chunk is a header and the bytes of some lines of one
// stream, as they are shown to readers: with their line ends, and without secrets. Numbers are
// little-endian.
//
//	file:  magic [8], bytes dropped before this file [8]
//	chunk: CRC-32C of the rest of the header [4], stream [1], flags [1], zero [2],
//	       number of the first line [8], Unix time in ms [8], lines [4], bytes [4]
//
// Lines are found when they are read. A program that prints 60 MB costs no work for each line.
const (
	fileMagic   = "output\x00\x02" // the last byte is the format; format 1 is in lines.go
	fileHeader  = 16
	chunkHeader = 32
	chunkOpen   = 1 // flag: no line end follows the last line
)

// maxChunk bounds the bytes of a chunk that has several lines. A page that begins in the middle of a
// chunk reads all of it.
const maxChunk = 64 << 10

// chunk is lines of one stream that were read together.
type chunk struct {
	number int   // of its first line
	stream byte  // 'o' stdout, 'e' stderr, 'h' a message of the host
	ms     int64 // Unix time
	lines  int
	open   bool // the stream has no line end behind the last line; see splitter
	size   int64
}

// next returns the number of the first line behind the chunk.
func (c *chunk) next() int { return c.number + c.lines }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendFileHeader begins a file, after so many bytes of the output were dropped.
func appendFileHeader(b []byte, dropped int64) []byte {
	return binary.LittleEndian.AppendUint64(append(b, fileMagic...), uint64(dropped))
}

// cutFileHeader reverses [appendFileHeader].
func cutFileHeader(b []byte) (dropped int64, ok bool) {
	if len(b) < fileHeader || string(b[:len(fileMagic)]) != fileMagic {
		return 0, false
	}
	return int64(binary.LittleEndian.Uint64(b[len(fileMagic):fileHeader]) & (1<<63 - 1)), true
}

// appendChunkHeader writes the header of a chunk. Its size is below 4 GiB.
func appendChunkHeader(b []byte, c *chunk) []byte {
	var h [chunkHeader]byte
	h[4] = c.stream
	if c.open {
		h[5] = chunkOpen
	}
	binary.LittleEndian.PutUint64(h[8:], uint64(c.number))
	binary.LittleEndian.PutUint64(h[16:], uint64(c.ms))
	binary.LittleEndian.PutUint32(h[24:], uint32(c.lines))
	binary.LittleEndian.PutUint32(h[28:], uint32(c.size))
	binary.LittleEndian.PutUint32(h[:], crc32.Checksum(h[4:], castagnoli))
	return append(b, h[:]...)
}

// cutChunkHeader reverses [appendChunkHeader].
func cutChunkHeader(h []byte) (c chunk, ok bool) {
	if len(h) < chunkHeader || binary.LittleEndian.Uint32(h) != crc32.Checksum(h[4:chunkHeader], castagnoli) {
		return c, false
	}
	c = chunk{
		number: int(binary.LittleEndian.Uint64(h[8:]) & (1<<62 - 1)), stream: h[4], open: h[5] == chunkOpen,
		ms: int64(binary.LittleEndian.Uint64(h[16:])), lines: int(binary.LittleEndian.Uint32(h[24:])), size: int64(binary.LittleEndian.Uint32(h[28:])),
	}
	ends := int64(c.lines) // each line end is a byte
	if c.open {
		ends--
	}
	return c, (c.stream == 'o' || c.stream == 'e' || c.stream == 'h') && h[5] <= chunkOpen && c.lines > 0 && c.size >= ends
}

// linesOf returns how many lines text has, which ends with a line end unless it is open.
func linesOf(text []byte, open bool) int {
	n := bytes.Count(text, []byte{'\n'})
	if open {
		n++
	}
	return n
}

// afterLines returns text without its first n lines.
func afterLines(text []byte, n int) []byte {
	for ; n > 0; n-- {
		i := bytes.IndexByte(text, '\n')
		if i < 0 {
			return nil
		}
		text = text[i+1:]
	}
	return text
}

// scan reads the headers of chunks in a part of a file, without the bytes between them.
type scan struct {
	from   io.ReaderAt
	at     int64 // of the next header
	end    int64
	window []byte // what was read last
	begin  int64  // where it is in the file
}

// scanWindow is how much a scan reads at once: of small chunks, many headers.
const scanWindow = 4 << 10

// next returns the next chunk and the offset of its bytes. At the end, and where no whole header
// is, ok is false. The bytes of a chunk may end behind the end.
func (s *scan) next() (c chunk, offset int64, ok bool, err error) {
	if s.at+chunkHeader > s.end {
		return c, 0, false, nil
	}
	if s.at < s.begin || s.at+chunkHeader > s.begin+int64(len(s.window)) {
		if s.window == nil {
			s.window = make([]byte, scanWindow)
		}
		s.window = s.window[:cap(s.window)]
		n, err := s.from.ReadAt(s.window[:min(scanWindow, s.end-s.at)], s.at)
		if err != nil && err != io.EOF {
			return c, 0, false, err
		}
		s.window, s.begin = s.window[:n], s.at
	}
	c, ok = cutChunkHeader(s.window[s.at-s.begin:])
	if !ok {
		return c, 0, false, nil
	}
	offset = s.at + chunkHeader
	s.at = offset + c.size
	return c, offset, true, nil
}
