package trust

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/host/internal/trust/content"
	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Options say what is trusted beside the user and root.
type Options struct {
	// Paths are absolute paths; what is at or below one is trusted. Default none.
	Paths []string
	// Groups are names or numbers of groups whose members may write. Default none.
	Groups []string
}

// A Policy decides about files. The nil Policy trusts the user, the user's group and
// root.
//
// # Concurrency
//
// Safe for concurrent use: it does not change.
type Policy struct {
	paths   []string // as given, and where they lead
	groups  []int
	content *content.Folder
}

// WithContent returns the policy with a folder whose content the user has to trust: Read
// and CheckContent ask it too.
func (p *Policy) WithContent(f *content.Folder) *Policy {
	with := Policy{content: f}
	if p != nil {
		with.paths, with.groups = p.paths, p.groups
	}
	return &with
}

// Content returns the folder of [Policy.WithContent], nil if there is none.
func (p *Policy) Content() *content.Folder {
	if p == nil {
		return nil
	}
	return p.content
}

// CheckContent returns why the content of a file must not be obeyed although the file may:
// it came with a folder and the user has not trusted it.
func (p *Policy) CheckContent(path string, text []byte) error { return p.Content().Check(path, text) }

// New returns a policy. The error names every path that is not absolute and every
// group that is not known.
func New(opt Options) (*Policy, error) {
	p := &Policy{}
	var problems []error
	for _, path := range opt.Paths {
		if !filepath.IsAbs(path) {
			problems = append(problems, fmt.Errorf("trusted path %q: not absolute", path))
			continue
		}
		p.paths = append(p.paths, filepath.Clean(path))
		if real, err := filepath.EvalSymlinks(path); err == nil && real != filepath.Clean(path) {
			p.paths = append(p.paths, real)
		}
	}
	for _, name := range opt.Groups {
		id, err := groupID(name)
		if err != nil {
			problems = append(problems, fmt.Errorf("trusted group %q: %w", name, err))
			continue
		}
		p.groups = append(p.groups, id)
	}
	return p, errors.Join(problems...)
}

// groupID returns the number of a group that is given by name or number.
func groupID(name string) (int, error) {
	if id, err := strconv.Atoi(name); err == nil && id >= 0 {
		return id, nil
	}
	g, err := user.LookupGroup(name)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(g.Gid)
}

// Paths returns the paths that are trusted whatever their owners and modes are.
func (p *Policy) Paths() []string {
	if p == nil {
		return nil
	}
	return slices.Clone(p.paths)
}

// covers reports whether a clean path is at or below a trusted one.
func (p *Policy) covers(path string) bool {
	return slices.ContainsFunc(p.Paths(), func(trusted string) bool {
		rest, below := strings.CutPrefix(path, trusted)
		return below && (rest == "" || rest[0] == filepath.Separator || trusted[len(trusted)-1] == filepath.Separator)
	})
}

// Check returns why the file or folder at a path may not be obeyed: an *[abi.Error]
// with code denied, whose hint is the command that mends it. What does not exist is
// judged by the folders above it that do.
func (p *Policy) Check(path string) error {
	_, err := p.check(path)
	return err
}

// check is Check, and reports whether the path leads to a trusted one, where nothing
// is judged.
func (p *Policy) check(path string) (covered bool, err error) {
	if !Supported {
		return true, nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return false, fmt.Errorf("check owner of %q: %w", path, err)
	}
	if p.covers(abs) {
		return true, nil
	}
	w := &walk{policy: p, asked: path, at: top, pending: parts(abs)}
	return w.run()
}

// Open opens a regular file that may be obeyed. The caller closes it. The open file
// is judged as well as the path, so that it is the very file that was meant.
func (p *Policy) Open(path string) (*os.File, fs.FileInfo, error) {
	covered, err := p.check(path)
	if err != nil {
		return nil, nil, err
	}
	f, info, err := regularfile.Open(path)
	if err != nil || covered {
		return f, info, err
	}
	if fault := p.judge(path, info, false); fault != nil {
		return nil, nil, errors.Join(fault.error(path), f.Close())
	}
	return f, info, nil
}

// Read returns the content of a regular file that may be obeyed, of at most limit
// bytes. See also [Policy.CheckContent].
func (p *Policy) Read(path string, limit int64) ([]byte, error) {
	f, _, err := p.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := regularfile.ReadAll(f, limit)
	if err != nil {
		return nil, err
	}
	if err := p.CheckContent(path, text); err != nil {
		return nil, err
	}
	return text, nil
}

// CheckFolder is Check for a folder and for what lies directly in it. What is in one
// of its folders is not looked at.
func (p *Policy) CheckFolder(dir string) error {
	if err := p.Check(dir); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("check owners in %q: %w", dir, err)
	}
	for _, e := range entries {
		if e.Type()&fs.ModeSocket != 0 {
			continue // it is not read; the folder says who can have made it
		}
		if err := p.Check(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// maxLinks is how many symbolic links a path may lead through, as in Linux.
const maxLinks = 40

// walk follows a path from the top, link by link.
type walk struct {
	policy  *Policy
	asked   string
	at      string   // so far; no part of it is a link
	pending []string // parts behind it
	links   int
}

// run judges everything on the way, and reports whether that leads to a trusted path.
func (w *walk) run() (covered bool, err error) {
	info, err := w.look()
	if err == nil {
		err = w.judge(info, true)
	}
	if err != nil {
		return false, err
	}
	for len(w.pending) > 0 {
		part := w.pending[0]
		w.pending = w.pending[1:]
		if part == "" || part == "." {
			continue
		}
		above := w.at
		w.at = filepath.Join(above, part) // also for "..", since no part of it is a link
		if info, err = w.look(); err != nil {
			return false, ignoreMissing(err)
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			if err := w.judge(info, true); err != nil {
				return false, err
			}
			continue
		}
		if err := w.follow(above, info); err != nil {
			return false, err
		}
		info = nil // of the link
		// Lexically, as the paths were given: where it leads may not exist.
		if w.policy.covers(filepath.Join(append([]string{w.at}, w.pending...)...)) {
			return true, nil
		}
	}
	if info == nil { // a link to "/", ".", and the like
		if info, err = w.look(); err != nil {
			return false, err
		}
	}
	return false, w.judge(info, false)
}

// look reads the state of the place that the walk has reached.
func (w *walk) look() (fs.FileInfo, error) {
	info, err := os.Lstat(w.at)
	if err != nil {
		return nil, fmt.Errorf("check owner of %q: %w", w.asked, err)
	}
	return info, nil
}

// ignoreMissing drops the error of what does not exist, and so cannot be obeyed.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// judge judges the place that the walk has reached. above says that it is a folder on
// the way.
func (w *walk) judge(info fs.FileInfo, above bool) error {
	if fault := w.policy.judge(w.at, info, above); fault != nil {
		return fault.error(w.asked)
	}
	return nil
}

// follow judges the link that the walk has reached, and puts what it leads to in its
// place.
func (w *walk) follow(above string, info fs.FileInfo) error {
	if w.links++; w.links > maxLinks {
		return &abi.Error{Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("check owner of %q: more than %d links", w.asked, maxLinks)}
	}
	if fault := w.policy.judgeOwner(w.at, info); fault != nil {
		return fault.error(w.asked)
	}
	target, err := os.Readlink(w.at)
	if err != nil {
		return fmt.Errorf("check owner of %q: %w", w.asked, err)
	}
	w.at = above
	if filepath.IsAbs(target) {
		w.at = top
	}
	w.pending = append(parts(target), w.pending...)
	return nil
}

// top is where every path begins.
const top = string(filepath.Separator)

// parts splits a path; it may begin with an empty part.
func parts(path string) []string { return strings.Split(path, top) }

// A fault is why one file or folder is not trusted.
type fault struct {
	path string // of the file or folder at fault
	why  string
	mend string // command that mends it
}

// error returns the error for a path that leads through a fault.
func (f *fault) error(asked string) error {
	text := fmt.Sprintf("%q is not trusted: %s", asked, f.why)
	if filepath.Clean(asked) != f.path {
		text = fmt.Sprintf("%q is not trusted, because of %q: %s", asked, f.path, f.why)
	}
	return &abi.Error{
		Code: abi.Denied, Permanent: true, Message: text,
		Hint: fmt.Sprintf("%s; or, if no other user can write there, --trust %s", f.mend, termtext.Quote(f.path)),
	}
}
