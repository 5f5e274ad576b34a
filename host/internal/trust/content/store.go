package content

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/atomicfile"
	"github.com/sentinel-runtime/sentinel/host/internal/rootfs"
	"github.com/sentinel-runtime/sentinel/host/internal/trash"
	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Options say where records are and which folders need none.
type Options struct {
	// Records is the folder of the records. Empty where the user has no configuration
	// folder: then nothing can be trusted but by Roots.
	Records string
	// Roots are absolute paths; all content at or below one counts. Default none.
	Roots []string
	// Git is the path of git. Without it every content of a folder in a git repository
	// that is not recorded is held.
	Git string
}

const (
	folderFile = "folder.json" // of a record
	heldName   = "held"        // marks a path whose content was held
	keepPerKey = 50            // trusted contents of one path; older ones are removed
	maxTokens  = 1 << 20       // bytes of a file with tokens
	maxRecord  = 64 << 10      // bytes of folderFile and of an identity

	// IdentityFile is the file in a state folder with the random identity of its store.
	IdentityFile = "identity"
)

// A Folder decides about the content of one folder of definitions and plugins, and of the
// .continuum folders of its workspace and of the project that it is in. What is trusted is
// recorded for each of these folders by its real path: by a link a project can have the folder
// of another one.
//
// # Concurrency
//
// Safe for concurrent use, also by several processes: a record consists of files that are
// created and replaced one by one.
type Folder struct {
	opt      Options
	own      *trusted   // of the folder itself
	projects []*trusted // of the .continuum folders; the first is in the project with the folder
}

// Open returns the folder dir of a host. It need not exist. workspace is the project whose
// .continuum folder is judged too, "" for none.
func Open(dir, workspace string, opt Options) *Folder {
	dir = filepath.Clean(dir)
	project := rootfs.EvalLinks(filepath.Dir(dir))
	f := &Folder{opt: opt, own: newTrusted(dir, opt), projects: []*trusted{newTrusted(filepath.Join(project, continuum), opt)}}
	if workspace != "" {
		if real := rootfs.EvalLinks(filepath.Clean(workspace)); real != project {
			f.projects = append(f.projects, newTrusted(filepath.Join(real, continuum), opt))
		}
	}
	return f
}

// places returns the records of all folders that f decides about.
func (f *Folder) places() []*trusted { return append([]*trusted{f.own}, f.projects...) }

func hash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// below returns the slash path of path below dir.
func below(dir, path string) (string, bool) {
	rel, err := filepath.Rel(dir, path)
	return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel) && rel != "."
}

// A place is a file that this folder decides about.
type place struct {
	of   *trusted
	key  string // names it in the record, as a person would name it
	link string // path of the first symbolic link on the way, which may be the file itself, "" for none
}

// find returns the place of a file, and false for a file that this folder does not decide
// about. A reader names a file by the folder that it looks in, so that name decides, wherever
// links lead: .sentinel/sentinels may be a link to any folder of a clone. A file that was
// named otherwise counts by its real path.
func (f *Folder) find(path string) (place, bool) {
	if at, judged := f.findName(path); judged {
		return at, true
	}
	// A link in the folder of the file counts by its own name.
	return f.findName(filepath.Join(rootfs.EvalLinks(filepath.Dir(path)), filepath.Base(path)))
}

// findName finds a place by the name of the file. Links above the folder do not count.
func (f *Folder) findName(path string) (place, bool) {
	for dir := filepath.Dir(path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		above, first := filepath.Dir(dir), filepath.Base(dir)
		rel, inside := below(above, path)
		switch {
		case !inside:
		case slices.Contains(folders, first):
			if rootfs.EvalLinks(above) == f.own.dir {
				return place{of: f.own, key: rel, link: firstLink(above, rel)}, true
			}
		case first == continuum:
			real := rootfs.EvalLinks(above)
			if i := slices.IndexFunc(f.projects, func(t *trusted) bool { return t.project == real }); i >= 0 {
				return place{of: f.projects[i], key: f.continuumKey(real, rel), link: firstLink(above, rel)}, true
			}
		}
	}
	return place{}, false
}

// continuumKey is the key of a file below a project: its path from the project of the folder,
// or its absolute path.
func (f *Folder) continuumKey(project, rel string) string {
	path := filepath.Join(project, filepath.FromSlash(rel))
	if key, inside := below(f.projects[0].project, path); inside {
		return key
	}
	return filepath.ToSlash(path)
}

// firstLink returns the first folder of the slash path rel of a file below dir that is a link, or the file if it is one: models
// write what a link leads to outside of the folder.
func firstLink(dir, rel string) string {
	for part := range strings.SplitSeq(rel, "/") {
		dir = filepath.Join(dir, part)
		// A junction of Windows is irregular.
		if info, err := os.Lstat(dir); err == nil && info.Mode()&(fs.ModeSymlink|fs.ModeIrregular) != 0 {
			return dir
		}
	}
	return ""
}

// folders are the folders below that of a host whose files are executed or decide what is.
var folders = []string{"sentinels", "recipes", "plugins"}

const continuum = ".continuum"

func exists(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

// Check returns why the content of a file does not count: an *[abi.Error] of code denied.
// It is nil for a file that this folder does not decide about. Content that counts as an
// edit of the user is recorded.
func (f *Folder) Check(path string, content []byte) error {
	if f == nil {
		return nil
	}
	at, judged := f.find(path)
	if !judged || at.of.covered {
		return nil
	}
	if at.link != "" {
		return linked(path, at.link, "replace the link by what it leads to, or set SENTINEL_TRUST_ROOTS to the folder of the project; remove %q if it is not yours")
	}
	t, key := at.of, at.key
	if t.has(key, content) {
		return nil
	}
	why := "it came with the folder"
	switch {
	case !t.known():
	case exists(t.heldFile(key)):
	default:
		switch f.writer(at, path, content) {
		case byUser:
			_ = t.trust(key, content) // without the record it is judged again, and asked about once it is committed
			return nil
		case byGit:
			why = "git wrote its content"
			_ = t.hold(key) // without the mark it is judged again
		case converted:
			why = "git converts its content, by the attribute filter, ident or working-tree-encoding"
			_ = t.hold(key)
		case unsure:
			why = "git changes files of the repository now (its index.lock exists)"
		}
	}
	return f.denied(path, why)
}

// Wrote records content that this program wrote to a file of a known folder on behalf of
// the user.
func (f *Folder) Wrote(path string, content []byte) error {
	if f == nil {
		return nil
	}
	at, judged := f.find(path)
	if !judged || at.of.covered || !at.of.known() || at.link != "" { // Check refuses what is found by a link
		return nil
	}
	return at.of.trust(at.key, content)
}

// Write has this program write a file on behalf of the user into a folder, also of a project
// that is not known or another one: it begins the record of the project, and records what
// write has written to the file that it names as trusted.
func (f *Folder) Write(dir string, write func() (name string, err error)) error {
	of := (*Folder)(nil)
	if f != nil && slices.Contains(folders, filepath.Base(dir)) {
		of = Open(filepath.Dir(dir), "", f.opt)
	}
	if err := of.Begin(); err != nil {
		return err
	}
	name, err := write()
	if err != nil || of == nil {
		return err
	}
	text, err := regularfile.Read(filepath.Join(dir, name), maxFile)
	if err != nil {
		return fmt.Errorf("record trusted content: %w", err)
	}
	return of.Wrote(filepath.Join(dir, name), text)
}

// ErrUntrusted is the error about content that does not count, by errors.Is.
var ErrUntrusted = errors.New("not trusted")

// denied returns the error about content that does not count.
func (f *Folder) denied(path, why string) error {
	e := &abi.Error{Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("%q is not trusted: %s, and you have not trusted it yet", path, why), Hint: f.hint()}
	return untrustedError{e}
}

// linked returns the error about a file or folder that is found by a link. What a link leads
// to is outside of the folder that was trusted, and may be anything. hint is a format with the link.
func linked(path, link, hint string) error {
	return untrustedError{&abi.Error{
		Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("%q is not trusted: %q is a symbolic link", path, link), Hint: fmt.Sprintf(hint, link),
	}}
}

type untrustedError struct{ err *abi.Error }

func (e untrustedError) Error() string        { return e.err.Error() }
func (e untrustedError) Unwrap() error        { return e.err }
func (e untrustedError) Is(target error) bool { return target == ErrUntrusted }

// hint says how content is trusted.
func (f *Folder) hint() string {
	if f.own.record == "" {
		return "there is no configuration folder to keep trusted content in: set HOME or XDG_CONFIG_HOME, or SENTINEL_TRUST_ROOTS to the folder"
	}
	return "sentinel trust shows what it executes and asks; --untrusted uses only what is part of the program"
}

// CheckLink returns why this program must not write to the folder: its name is a symbolic link, and the folder
// is not known yet. A link may have come with the project, and leads to any folder of the user.
func (f *Folder) CheckLink() error {
	if f == nil || !f.own.isLink() || f.own.covered || f.own.known() {
		return nil
	}
	link := filepath.Join(f.own.project, filepath.Base(f.own.name))
	return untrustedError{&abi.Error{
		Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("%q is not trusted: it is a symbolic link to %q, and you have not trusted it yet", link, f.own.dir), Hint: f.hint(),
	}}
}

// Begin makes the folder known before this program writes the first file of it. What is
// there by then and is not trusted is held. It does nothing for a folder that is known or
// below a root, and refuses what [Folder.CheckLink] does.
func (f *Folder) Begin() error {
	if err := f.CheckLink(); err != nil {
		return err
	}
	return f.begin()
}

// begin does what Begin does, also for a folder whose name is a link.
func (f *Folder) begin() error {
	if f == nil {
		return nil
	}
	fresh := slices.DeleteFunc(f.places(), func(t *trusted) bool { return t.record == "" || t.covered || t.known() })
	if len(fresh) == 0 {
		return nil
	}
	items, _, err := f.untrusted()
	if err != nil {
		return err
	}
	for _, t := range fresh {
		for _, i := range items {
			if i.of != t {
				continue
			}
			hold := func() error { return t.hold(i.Key) }
			if i.Kind == Environment {
				hold = func() error { return t.wait(waiting{Key: i.Key, Path: i.Path, Held: true}) }
			}
			if err := hold(); err != nil {
				return err
			}
		}
		if err := t.write(record{Folder: t.dir}); err != nil { // last: until then nothing counts
			return err
		}
	}
	return nil
}

// identity returns the identity of the store in a state folder, "" for one without.
func identity(state string) string {
	text, err := regularfile.Read(filepath.Join(state, IdentityFile), maxRecord) // it may have come with the folder
	if err != nil {
		return ""
	}
	return string(text)
}

// stateIsInside reports whether a state folder is part of the project, by its name or by where links lead. Another one
// was named by the user.
func (f *Folder) stateIsInside(state string) bool {
	if _, _, named := f.stateName(state); named {
		return true
	}
	state = rootfs.EvalLinks(filepath.Clean(state))
	return slices.ContainsFunc(f.places(), func(t *trusted) bool {
		_, inProject := below(t.project, state)
		_, inFolder := below(t.dir, state)
		return inProject || inFolder
	})
}

// stateName returns the folder of this project that the name of a state folder is below, and its slash path from there.
// Links above that folder do not count.
func (f *Folder) stateName(state string) (dir, rel string, named bool) {
	state = filepath.Clean(state)
	for dir := filepath.Dir(state); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		real := rootfs.EvalLinks(dir)
		if slices.ContainsFunc(f.places(), func(t *trusted) bool { return real == t.project || real == t.dir }) {
			rel, named = below(dir, state)
			return dir, rel, named
		}
	}
	return "", "", false
}

// checkStateLink returns why a state folder is not obeyed that the project leads to by a link: who made the link,
// as by a commit, chose the store. A user who keeps it elsewhere names that folder.
func (f *Folder) checkStateLink(state string) error {
	dir, rel, named := f.stateName(state)
	if !named {
		return nil
	}
	link := firstLink(dir, rel+"/"+IdentityFile)
	if link == "" {
		return nil
	}
	return linked(state, link, "remove %q if it is not yours; name the folder that it leads to with --state if it is")
}

// stateHasContent reports whether there is anything in a state folder.
func stateHasContent(state string) bool {
	if info, err := os.Stat(state); err != nil || !info.IsDir() { // opening a pipe would wait for its other end
		return err == nil
	}
	entries, err := os.ReadDir(state)
	return err == nil && len(entries) > 0
}

// CheckState returns why a host must not open a state folder: it came with the project, or
// it is new and cannot be recorded. For one that does not exist or is empty, it begins a
// record with a new identity, which it writes to the folder.
func (f *Folder) CheckState(state string) error {
	if f == nil || f.own.covered || !f.stateIsInside(state) {
		return nil
	}
	if err := f.checkStateLink(state); err != nil {
		return err
	}
	if err := f.CheckLink(); err != nil {
		return err
	}
	if stateHasContent(state) {
		if err := f.CheckTracked(state); err != nil {
			return err
		}
		r, err := f.own.read()
		if err != nil {
			return err
		}
		if id := identity(state); id != "" && id == r.State {
			return nil
		}
		return f.denied(state, "its store came with the folder")
	}
	if f.own.record == "" {
		return f.denied(state, "a new store cannot be distinguished from one that came with the folder")
	}
	err := f.Begin()
	if err == nil {
		err = f.trustState(state)
	}
	if errors.Is(err, ErrUntrusted) {
		return err
	}
	if err != nil { // better now than at the next start
		return &abi.Error{Code: abi.Unavailable, Message: err.Error(),
			Hint: fmt.Sprintf("make %s writable, or set SENTINEL_TRUST_ROOTS to the folder of the project", f.opt.Records)}
	}
	return nil
}

// CheckTracked returns why files in a state folder inside the project may be those of a commit:
// git tracks some of them. A checkout replaces ignored files without a message, the identity stays what it
// was, and other files of the folder are obeyed as well, such as tokens. Tokens that this program did not
// write there, or whose content git has stored, do not count either, though nothing is tracked any more: of a
// commit that nothing refers to, git removes the objects and leaves the file. So the store is
// forgotten, and counts again once git tracks nothing of it and the user has trusted it.
func (f *Folder) CheckTracked(state string) error {
	if f == nil || f.own.covered || !f.stateIsInside(state) {
		return nil
	}
	if err := f.checkStateLink(state); err != nil {
		return err
	}
	state = rootfs.EvalLinks(filepath.Clean(state))
	dirs := repositoriesOf(state)
	if len(dirs) == 0 {
		return nil
	}
	unknown := func(why string) error {
		return &abi.Error{Code: abi.Unavailable, Message: fmt.Sprintf("%q: it is in a git repository, which cannot say whether a commit has changed it: %s", state, why),
			Hint: "see that `git status` works there for this user, or set SENTINEL_TRUST_ROOTS to the folder of the project"}
	}
	if f.opt.Git == "" {
		return unknown("git is not in PATH")
	}
	ctx, cancel := context.WithTimeout(context.Background(), gitTimeout)
	defer cancel()
	var repositories []*repository
	for _, dir := range dirs {
		r := &repository{Runner: newGit(f.opt.Git), dir: dir}
		changing, err := r.openIndex(ctx)
		if err == nil && changing {
			return unknown("git changes files of the repository now (its index.lock exists)")
		}
		var files []entry
		if err == nil {
			files, err = r.tracked(ctx, state)
		}
		if err != nil {
			return unknown(err.Error())
		}
		if len(files) > 0 {
			return f.forgetTracked(state, files[0].name)
		}
		repositories = append(repositories, r)
	}
	return f.checkTokens(ctx, repositories, state, unknown)
}

// forgetTracked forgets the store in a state folder of which git tracks a file, and returns why it does
// not count.
func (f *Folder) forgetTracked(state, name string) error {
	if f.own.known() {
		if err := f.own.write(record{Folder: f.own.dir}); err != nil {
			return err
		}
	}
	return untrustedError{&abi.Error{
		Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("%q is not trusted: git tracks %s, so a commit may have replaced its store and tokens", state, name),
		Hint: fmt.Sprintf("git rm -r --cached %q, and commit that; then sentinel trust shows what the store executes and asks", state),
	}}
}

// checkTokens returns why tokens in a state folder of which git tracks nothing do not count: a commit
// brought them, and another one took them out of the index again before a host looked.
func (f *Folder) checkTokens(ctx context.Context, repositories []*repository, state string, unknown func(why string) error) error {
	if !f.own.known() { // the store is not trusted either; its tokens are removed when it is
		return nil
	}
	for _, name := range TokenFiles {
		file := filepath.Join(state, name)
		text, err := regularfile.Read(file, maxTokens)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return unknown(err.Error())
		}
		why := "this program did not write it here, so a commit may have brought it"
		if f.own.has(tokensKey+file, text) {
			stored := false
			for _, r := range repositories {
				if stored, err = r.stores(ctx, text); err != nil {
					return unknown(err.Error())
				}
				if stored {
					break
				}
			}
			if !stored {
				continue
			}
			why = "its content is in the git repository"
		}
		return untrustedError{&abi.Error{
			Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("%q is not trusted: %s, and others may know these tokens", file, why),
			Hint: fmt.Sprintf("rm %q, then make new tokens with sentinel token --rotate and sentinel token new", file),
		}}
	}
	return nil
}

// tokensKey is the start of the keys of files with tokens; their absolute paths follow.
const tokensKey = "tokens:"

// WriteTokens calls write, which puts a file with this content into a state folder. Its digest is recorded,
// and those of contents before are removed: a revoked token that comes back does not count.
func (f *Folder) WriteTokens(file string, content []byte, write func() error) error {
	file = filepath.Join(rootfs.EvalLinks(filepath.Dir(filepath.Clean(file))), filepath.Base(file))
	if f == nil || f.own.covered || f.own.record == "" || !f.stateIsInside(filepath.Dir(file)) {
		return write()
	}
	key := tokensKey + file
	if err := f.own.trust(key, content); err != nil { // first: a crash leaves no file that does not count
		return err
	}
	own := f.own.contentFile(key, content)
	if err := write(); err != nil {
		return errors.Join(err, os.Remove(own))
	}
	written, err := os.Stat(own)
	if err != nil {
		return fmt.Errorf("record tokens: %w", err)
	}
	for _, other := range f.own.contents(key) {
		// A newer one is of another process, whose file takes the place of this one.
		if info, err := os.Stat(other); err == nil && info.ModTime().Before(written.ModTime()) {
			_ = os.Remove(other) // the next write removes it
		}
	}
	return nil
}

// CheckStore returns why the store that was opened in a state folder inside the project must not be
// used: it is another one than before, by the identity in the store itself. A file beside the store says
// nothing about a store that has taken the place of another. That of a new folder, or of one that was trusted, is
// recorded after first has returned without an error, which is executed once: before that nothing of the
// store is.
func (f *Folder) CheckStore(state, id string, first func() error) error {
	if f == nil || f.own.covered || !f.stateIsInside(state) {
		return nil
	}
	r, err := f.own.read()
	switch {
	case err != nil:
		return err
	case r.Store == id:
		return nil
	case r.Store == "":
		if err := first(); err != nil {
			return err
		}
		r.Store = id
		_ = f.own.write(r) // without it the next start does this again
		return nil
	}
	if err := f.own.write(record{Folder: f.own.dir}); err != nil {
		return err
	}
	return f.denied(state, "its store is another one than this program had there")
}

// TokenFiles are the files in a state folder with the tokens of the API.
var TokenFiles = [...]string{"token", "tokens.json"}

// machineFolders are the folders in a state folder that hold repositories and files of projects and belong to the machine
// where they were made. Git obeys what is in a repository, and its files may be links.
var machineFolders = [...]string{"checkpoints", "worktrees", "verify", "confined", "confined-removed", "cache"}

// onlyFiles returns an error if a state folder, at any depth, has a link, pipe or device that came with
// it: this program would write to what it leads to, or wait for a reader.
func onlyFiles(state string) error {
	const odd = fs.ModeSymlink | fs.ModeNamedPipe | fs.ModeDevice | fs.ModeCharDevice | fs.ModeIrregular
	return filepath.WalkDir(state, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err == nil && d.IsDir() && strings.HasPrefix(d.Name(), AsideFolder) && filepath.Dir(path) == filepath.Clean(state): // nothing uses it
			return fs.SkipDir
		case errors.Is(err, fs.ErrNotExist): // a new folder, or it was removed meanwhile
			return nil
		case err != nil:
			return fmt.Errorf("look at a store that came with the folder: %w", err)
		case d.Type()&odd != 0:
			return &abi.Error{Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("%q is not trusted: %q is a %s, and this program has files and folders there", state, path, kindOf(d.Type())),
				Hint: fmt.Sprintf("remove %q, or the state folder", path)}
		}
		return nil
	})
}

func kindOf(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "symbolic link"
	case m&fs.ModeNamedPipe != 0:
		return "pipe"
	}
	return "device"
}

// AsideFolder is the folder in a state folder to which the content of one is moved that came with the project and that
// the user does not take over. A further one has a number behind the name.
const AsideFolder = "came-with-the-folder"

// setAside moves all that a state folder has into a new folder in it. A question can show the definitions of a store,
// but not all that the store would execute: variables of its runs, events and firings that wait, memory, tickets. What
// is moved stays hidden from models as the rest of the folder. If it ends in the middle, the next call moves the rest.
func setAside(state string) error {
	entries, err := os.ReadDir(state)
	if err != nil {
		return fmt.Errorf("set aside a store that came with the folder: %w", err)
	}
	names := map[string]bool{}
	for _, e := range entries {
		names[e.Name()] = true
	}
	to := AsideFolder
	for n := 2; names[to]; n++ {
		to = fmt.Sprintf("%s-%d", AsideFolder, n)
	}
	if err := os.Mkdir(filepath.Join(state, to), 0o700); err != nil {
		return fmt.Errorf("set aside a store that came with the folder: %w", err)
	}
	for _, e := range entries {
		if err := os.Rename(filepath.Join(state, e.Name()), filepath.Join(state, to, e.Name())); err != nil {
			return fmt.Errorf("set aside a store that came with the folder: %w", err)
		}
	}
	return nil
}

// trustState records the identity of a store, which gets one if it has none. Tokens that came
// with it are removed: who made them knows them, and may be another person than who is asked. So are machineFolders.
func (f *Folder) trustState(state string) error {
	for _, name := range machineFolders {
		if err := trash.Delete(context.Background(), filepath.Join(state, name)); err != nil {
			return fmt.Errorf("remove %s of a store that came with the folder: %w", name, err)
		}
	}
	if err := onlyFiles(state); err != nil {
		return err
	}
	for _, name := range TokenFiles {
		if err := os.Remove(filepath.Join(state, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove tokens of a store that came with the folder: %w", err)
		}
	}
	id := identity(state)
	if id == "" {
		id = rand.Text()
		if err := os.MkdirAll(state, 0o700); err != nil {
			return fmt.Errorf("record trusted store: %w", err)
		}
		if err := atomicfile.Replace(filepath.Join(state, IdentityFile), []byte(id), 0o600); err != nil {
			return fmt.Errorf("record trusted store: %w", err)
		}
	}
	return f.own.write(record{Folder: f.own.dir, State: id})
}
