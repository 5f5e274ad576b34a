package checkpoint

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/regularfile"
)

// newestFile has the index of the newest checkpoint, which the next one compares with: git
// takes ten times as long to return it. It begins with a line of the number of chunks and one
// with the id and size of each. It is a cache: the commit has the hash of the ids, so that a
// file of another checkpoint or one that is damaged is not used.
const newestFile = "newest"

// hashOf returns the hash of the ids of chunks.
func hashOf(ids []string) string {
	sum := sha1.Sum([]byte(strings.Join(ids, " ")))
	return hex.EncodeToString(sum[:])
}

// readNewest returns the index of a checkpoint, nil if the file does not have it.
func (r *repository) readNewest(c *Checkpoint) *index {
	if c.index == "" {
		return nil
	}
	data, err := regularfile.Read(filepath.Join(r.dir, newestFile), regularfile.Unlimited)
	if err != nil {
		return nil
	}
	line, rest, _ := bytes.Cut(data, []byte("\n"))
	count, err := strconv.Atoi(string(line))
	if err != nil || count != c.chunks {
		return nil
	}
	x := &index{ids: make([]string, count)}
	sizes := make([]int, count)
	for i := range count {
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		id, size, _ := strings.Cut(string(line), " ")
		if sizes[i], err = strconv.Atoi(size); err != nil || sizes[i] < 0 {
			return nil
		}
		x.ids[i] = id
	}
	if hashOf(x.ids) != c.index {
		return nil
	}
	for i, size := range sizes {
		if size > len(rest) {
			return nil
		}
		id := blobID(rest[:size])
		if hex.EncodeToString(id[:]) != x.ids[i] || x.decode(string(rest[:size])) != nil {
			return nil
		}
		rest = rest[size:]
	}
	return x
}

// writeNewest replaces the file. It needs no rename and no fsync, as readNewest does not use one
// that is not whole. Without it, such as on a full disk, the next checkpoint reads the index from
// git.
func (r *repository) writeNewest(f *feeder) {
	var text bytes.Buffer
	fmt.Fprintln(&text, len(f.ids))
	for i, id := range f.ids {
		fmt.Fprintln(&text, id, len(f.chunks[i]))
	}
	for _, chunk := range f.chunks {
		text.Write(chunk)
	}
	path := filepath.Join(r.dir, newestFile)
	_ = os.Remove(path) // a link in its place is not followed
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return
	}
	_, _ = file.Write(text.Bytes())
	_ = file.Close()
}
