package cond

import (
	"encoding/binary"
	"errors"
	"io"
)

// Parent and child exchange frames over the child's stdin and stdout. A frame
// is the length of its body, then parts, each with its length and bytes. A
// length has four bytes, little endian. Values in a part are JSON.
//
//	parent  limits MEMORY
//	child   ready VERSION
//	parent  eval SOURCE UNSET [NAME JSON]...   UNSET: names separated by commas
//	parent  check SOURCE
//	child   value TRUTHY JSON GROWN            JSON is empty for undefined, NaN for numbers that JSON has not
//	child   error ERROR GROWN                  ERROR: an abi.Error
//
// GROWN is "1" if the child has grown and should be replaced.
const protocol = "1"

// maxFrame bounds the body of a frame, in bytes. It is enough for the largest
// request and the largest result.
const maxFrame = maxSource + maxData + maxResult + 1<<20

var errFrame = errors.New("malformed frame")

// appendFrame encodes a frame.
func appendFrame(b []byte, parts ...string) []byte {
	start := len(b)
	b = append(b, 0, 0, 0, 0)
	for _, p := range parts {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(p)))
		b = append(b, p...)
	}
	binary.LittleEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	return b
}

// readFrame reads one frame. The error is io.EOF only between two frames.
func readFrame(r io.Reader) ([]string, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint32(head[:])
	if size > maxFrame {
		return nil, errFrame
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, errFrame
	}
	var parts []string
	for len(body) > 0 {
		if len(body) < 4 {
			return nil, errFrame
		}
		n := binary.LittleEndian.Uint32(body)
		if uint64(n) > uint64(len(body)-4) {
			return nil, errFrame
		}
		parts = append(parts, string(body[4:4+n]))
		body = body[4+n:]
	}
	return parts, nil
}
