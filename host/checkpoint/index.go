package checkpoint

import (
	"cmp"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"iter"
	"path"
	"slices"
	"strings"
)

// An index describes a workspace: every path below it, the folders in the order of
// [comparePaths], and the content of those files that are kept. It is read-only once a
// checkpoint has it.
type index struct {
	root    root
	folders []folder
	ids     []string // of the chunks that it was read from
}

// A root is the folder of the workspace itself, for which there is no node.
type root struct {
	Inode   uint64 `json:"inode,omitempty"`
	Mounted bool   `json:"mounted,omitempty"` // it is the top of what was mounted there
}

// replaced reports whether something else is mounted there now than in an earlier state.
func (now root) replaced(before root) bool {
	return now.Mounted != before.Mounted || now.Mounted && now.Inode != before.Inode
}

// A folder is the names in one folder, sorted. The path of the workspace is "".
type folder struct {
	path  string
	nodes []node
	id    fileID // of one that a walk has read; it is not stored
}

// Kinds of a node.
const (
	kindFile   = 'f'
	kindLink   = 'l'
	kindFolder = 'd'
	kindGit    = 'g' // .git of a repository, which is not looked into; its content stands for what it refers to
	kindOther  = 'o' // a pipe, socket or device
)

// Flags of a node.
const (
	flagIgnored    = 1 << iota // git did not list it when the rules were taken
	flagUnreadable             // its content, or what is in the folder, could not be read
	flagMounted                // it is the top of what was mounted there
)

// A node is one path. Times are in nanoseconds.
type node struct {
	name     string
	kind     byte
	flags    byte
	mode     uint32 // permissions, setuid, setgid and sticky bit; of kindOther also the type
	uid, gid uint32
	size     int64
	mtime    int64
	ctime    int64 // 0 where the system has none
	ino      uint64
	content  content
}

// A content is where the content of a node is kept.
type content struct {
	store byte // 0 if it is not kept
	id    [20]byte
}

// Stores of contents.
const (
	storeGit   = 'b' // a blob of git
	storeClone = 'c' // a clone of the file
	storeState = 's' // not kept: a hash of the state of a .git
)

// kept reports whether the content can be had back.
func (n *node) kept() bool { return n.content.store == storeGit || n.content.store == storeClone }

// sameFile reports whether a file has not been written since: any write gives a new ctime,
// see [repository.settle].
func (n *node) sameFile(o *node) bool {
	return n.kind == o.kind && n.size == o.size && n.mtime == o.mtime && n.ctime == o.ctime && n.ino == o.ino
}

// sameMeta compares modes and owners.
func (n *node) sameMeta(o *node) bool {
	return (n.mode == o.mode || n.kind == kindLink) && n.uid == o.uid && n.gid == o.gid
}

// sameContent compares contents. What is not kept is the same while no time or size of it
// has changed: a change of the mode alone counts as one of the content too.
func (n *node) sameContent(o *node) bool {
	switch {
	case n.kind != o.kind:
		return false
	case n.kind == kindFolder:
		return true
	case n.kind == kindGit:
		return n.content == o.content
	case n.kind == kindOther:
		return n.mode == o.mode
	case n.content.store == storeGit && o.content.store == storeGit:
		return n.content == o.content
	}
	return n.sameFile(o)
}

// drop leaves out the nodes without a kind: what was gone when its content was read.
func (x *index) drop() {
	for i := range x.folders {
		f := &x.folders[i]
		if slices.ContainsFunc(f.nodes, func(n node) bool { return n.kind == 0 }) {
			f.nodes = slices.DeleteFunc(slices.Clone(f.nodes), func(n node) bool { return n.kind == 0 }) // others have the nodes
		}
	}
}

// same reports whether two states of a path are the same; nil is one that does not exist.
func same(a, b *node) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.sameContent(b) && a.sameMeta(b)
}

// comparePaths orders a folder directly before what is in it.
func comparePaths(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if x, y := a[i], b[i]; x != y {
			if x == '/' {
				return -1
			}
			if y == '/' {
				return 1
			}
			return cmp.Compare(x, y)
		}
	}
	return cmp.Compare(len(a), len(b))
}

// below reports whether a path is a folder or in it.
func below(name, dir string) bool {
	return dir == "" || name == dir || len(name) > len(dir) && name[len(dir)] == '/' && strings.HasPrefix(name, dir)
}

// join is [path.Join] of a folder and a name in it.
func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

func splitPath(name string) (dir, base string) {
	dir, base = path.Split(name)
	return strings.TrimSuffix(dir, "/"), base
}

func (x *index) folder(dir string) *folder {
	if x == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(x.folders, dir, func(f folder, p string) int { return comparePaths(f.path, p) })
	if !ok {
		return nil
	}
	return &x.folders[i]
}

func (f *folder) find(base string) *node {
	if f == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(f.nodes, base, func(n node, b string) int { return strings.Compare(n.name, b) })
	if !ok {
		return nil
	}
	return &f.nodes[i]
}

// find returns the node of a path, nil if there is none.
func (x *index) find(name string) *node {
	dir, base := splitPath(name)
	return x.folder(dir).find(base)
}

// under returns the nodes below a folder, with their paths.
func (x *index) under(dir string) iter.Seq2[string, *node] {
	return func(yield func(string, *node) bool) {
		i, _ := slices.BinarySearchFunc(x.folders, dir, func(f folder, p string) int { return comparePaths(f.path, p) })
		for ; i < len(x.folders) && below(x.folders[i].path, dir); i++ {
			f := &x.folders[i]
			for j := range f.nodes {
				if !yield(join(f.path, f.nodes[j].name), &f.nodes[j]) {
					return
				}
			}
		}
	}
}

// blind returns the folders that could not be read: what is in them is not known.
func (x *index) blind() (dirs []string) {
	for i := range x.folders {
		for j := range x.folders[i].nodes {
			if n := &x.folders[i].nodes[j]; n.kind == kindFolder && n.flags&flagUnreadable != 0 {
				dirs = append(dirs, join(x.folders[i].path, n.name))
			}
		}
	}
	return dirs
}

// merge calls fn for each path that one of the indexes has, with its node in each, nil where
// there is none. The slice is valid during the call.
func merge(fn func(dir string, nodes []*node), list ...*index) {
	at, inside := make([]int, len(list)), make([]*folder, len(list))
	for {
		dir, found := "", false
		for i, x := range list {
			if x != nil && at[i] < len(x.folders) && (!found || comparePaths(x.folders[at[i]].path, dir) < 0) {
				dir, found = x.folders[at[i]].path, true
			}
		}
		if !found {
			return
		}
		for i, x := range list {
			inside[i] = nil
			if x != nil && at[i] < len(x.folders) && x.folders[at[i]].path == dir {
				inside[i] = &x.folders[at[i]]
				at[i]++
			}
		}
		mergeFolder(fn, dir, inside)
	}
}

func mergeFolder(fn func(dir string, nodes []*node), dir string, list []*folder) {
	at, nodes := make([]int, len(list)), make([]*node, len(list))
	for {
		name, found := "", false
		for i, f := range list {
			if f != nil && at[i] < len(f.nodes) && (!found || f.nodes[at[i]].name < name) {
				name, found = f.nodes[at[i]].name, true
			}
		}
		if !found {
			return
		}
		for i, f := range list {
			nodes[i] = nil
			if f != nil && at[i] < len(f.nodes) && f.nodes[at[i]].name == name {
				nodes[i] = &f.nodes[at[i]]
				at[i]++
			}
		}
		fn(dir, nodes)
	}
}

// An index is stored in chunks, which end behind folders that a hash of their path chooses:
// so most chunks of two checkpoints are the same object of git.
const (
	chunkFolders = 128     // folders of a chunk, on average
	chunkBytes   = 1 << 20 // a chunk ends behind the folder that exceeds them
)

// encode returns the chunks of an index.
func (x *index) encode() (list [][]byte) {
	var now []byte
	for i := range x.folders {
		f := &x.folders[i]
		now = f.encode(now)
		h := fnv.New32a()
		_, _ = h.Write([]byte(f.path)) // never fails
		if h.Sum32()%chunkFolders == 0 || len(now) > chunkBytes || i == len(x.folders)-1 {
			list, now = append(list, now), make([]byte, 0, len(now))
		}
	}
	return list
}

func (f *folder) encode(to []byte) []byte {
	text := func(s string) { to = append(binary.AppendUvarint(to, uint64(len(s))), s...) }
	text(f.path)
	to = binary.AppendUvarint(to, uint64(len(f.nodes)))
	for i := range f.nodes {
		n := &f.nodes[i]
		text(n.name)
		to = append(to, n.kind, n.flags, n.content.store)
		for _, v := range [...]uint64{uint64(n.mode), uint64(n.uid), uint64(n.gid), uint64(n.size), n.ino} {
			to = binary.AppendUvarint(to, v)
		}
		to = binary.LittleEndian.AppendUint64(to, uint64(n.mtime))
		to = binary.LittleEndian.AppendUint64(to, uint64(n.ctime))
		if n.content.store != 0 {
			to = append(to, n.content.id[:]...)
		}
	}
	return to
}

var errIndex = errors.New("the index of the checkpoint is damaged")

// decode adds the folders of a chunk. Names are parts of the text.
func (x *index) decode(text string) error {
	d := decoder{text: text}
	for d.text != "" && !d.bad {
		f := folder{path: d.string()}
		count := d.uint()
		if d.bad || count > uint64(len(d.text)) {
			return errIndex
		}
		f.nodes = make([]node, count)
		for i := range f.nodes {
			d.node(&f.nodes[i])
		}
		x.folders = append(x.folders, f)
	}
	if d.bad {
		return errIndex
	}
	return nil
}

// A decoder reads a chunk. bad stays set once the text has ended too early.
type decoder struct {
	text string
	bad  bool
}

func (d *decoder) take(n uint64) string {
	if d.bad || n > uint64(len(d.text)) {
		d.bad = true
		return ""
	}
	s := d.text[:n]
	d.text = d.text[n:]
	return s
}

func (d *decoder) uint() uint64 {
	v := uint64(0)
	for shift := 0; shift < 64 && !d.bad && d.text != ""; shift += 7 {
		b := d.text[0]
		d.text = d.text[1:]
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
	d.bad = true
	return 0
}

func (d *decoder) string() string { return d.take(d.uint()) }

func (d *decoder) fixed() int64 {
	s := d.take(8)
	if d.bad {
		return 0
	}
	return int64(binary.LittleEndian.Uint64([]byte(s)))
}

func (d *decoder) node(n *node) {
	n.name = d.string()
	head := d.take(3)
	if d.bad {
		return
	}
	n.kind, n.flags, n.content.store = head[0], head[1], head[2]
	n.mode, n.uid, n.gid = uint32(d.uint()), uint32(d.uint()), uint32(d.uint())
	n.size, n.ino = int64(d.uint()), d.uint()
	n.mtime, n.ctime = d.fixed(), d.fixed()
	if n.content.store != 0 {
		copy(n.content.id[:], d.take(20))
	}
}
