package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A root builds the file system of a command below a folder, from that of this process.
type root struct {
	dir  string          // mount point of the new root
	hide []string        // real paths
	made map[string]bool // folders of the host that are in the new root, and are no links
}

// enter replaces the file system of this process, which is the first of new namespaces, by
// one that has only what the command may see.
func (p *plan) enter() error {
	if err := syscall.Sethostname([]byte("sentinel")); err != nil {
		return fmt.Errorf("host name: %w", err)
	}
	if err := leaveWatches(); err != nil {
		return err
	}
	boundIDs(p.Limits.Processes)
	// Nothing that is mounted here reaches the host's file system.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	r := &root{dir: filepath.Join(p.Launch, rootFolder), hide: existing(p.Hide), made: map[string]bool{}}
	if err := unix.Mount("tmpfs", r.dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=16m"); err != nil {
		return fmt.Errorf("mount the root: %w", err)
	}
	if err := r.fill(p); err != nil {
		return err
	}
	if err := os.Chdir(r.dir); err != nil {
		return err
	}
	if err := syscall.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil { // the old root, which lies over the new one
		return fmt.Errorf("unmount the old root: %w", err)
	}
	return os.Chdir("/")
}

// shareOfWatches is the part of the user's inotify instances and watches, and of its watches of epoll,
// that one command may have. The
// kernel counts them for the user too, over all commands.
const shareOfWatches = 8

// leaveWatches bounds what the user namespace may have of the user's inotify instances and watches,
// of which the host and the user's other programs need some.
func leaveWatches() error {
	for _, name := range []string{"instances", "watches"} {
		text, err := os.ReadFile("/proc/sys/fs/inotify/max_user_" + name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the kernel has none
		}
		most, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			continue
		}
		err = os.WriteFile("/proc/sys/user/max_inotify_"+name, []byte(strconv.Itoa(most/shareOfWatches)), 0o644)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("bound inotify %s: %w", name, err)
		}
	}
	return nil
}

func (r *root) fill(p *plan) error {
	// Nothing of an earlier command is in them: other folders are mounted below.
	if err := r.temporary(); err != nil {
		return err
	}
	// Folders of users may lie below what is hidden, and come after that.
	var above, below []string
	for _, path := range p.Read {
		real, err := r.link(path)
		switch {
		case err != nil: // it does not exist, or cannot be read by the host either
		case slices.Contains(r.hide, real):
		case slices.ContainsFunc(r.hide, func(h string) bool { return within(real, h) }):
			below = append(below, real)
		default:
			above = append(above, real)
		}
	}
	if err := r.bindAll(above); err != nil {
		return err
	}
	if err := r.mask(above); err != nil {
		return err
	}
	if err := r.bindAll(below); err != nil {
		return err
	}
	// What is hidden below those, such as credentials of toolchains.
	if err := r.mask(below); err != nil {
		return err
	}
	protected := existing(p.Protect)
	var folders []*writable
	for i, path := range p.Write {
		w, err := r.write(p, path, i == 0)
		if err != nil {
			return err
		}
		if err := w.keep(r, protected); err != nil {
			return err
		}
		folders = append(folders, w)
	}
	if err := r.folder("/dev"); err != nil {
		return err
	}
	// What the command adds to caches is counted there, see plan.used.
	if err := os.MkdirAll(p.Layers, 0o700); err != nil {
		return err
	}
	if err := r.bind(p.Layers, layersPath); err != nil {
		return err
	}
	if err := r.processes(); err != nil {
		return err
	}
	if err := r.seal(); err != nil {
		return err
	}
	for _, w := range folders {
		if err := w.open(); err != nil {
			return err
		}
	}
	for _, path := range []string{"/tmp", "/var/tmp"} {
		if err := r.open(path); err != nil {
			return err
		}
	}
	for i, c := range p.Caches {
		r.layer(c, filepath.Join(p.Scratch, scratchHome), filepath.Join(p.Layers, strconv.Itoa(i)))
	}
	return r.devices()
}

// between returns the folders between dir and the paths below it, each once, from the top.
func between(dir string, paths []string) (list []string) {
	for _, path := range paths {
		if path == dir || !within(path, dir) {
			continue
		}
		for at := filepath.Dir(path); at != dir; at = filepath.Dir(at) {
			if !slices.Contains(list, at) && !slices.ContainsFunc(paths, func(other string) bool { return within(at, other) }) {
				list = append(list, at)
			}
		}
	}
	slices.Sort(list) // a folder before those in it
	return list
}

// temporary mounts /tmp, which is /var/tmp as well.
func (r *root) temporary() error {
	for _, dir := range []string{"/tmp", "/var/tmp"} {
		if err := r.folder(dir); err != nil {
			return err
		}
	}
	if err := unix.Mount("tmpfs", r.dir+"/tmp", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777,nr_inodes=100000,size=1g"); err != nil {
		return fmt.Errorf("mount /tmp: %w", err)
	}
	if err := unix.Mount(r.dir+"/tmp", r.dir+"/var/tmp", "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount /var/tmp: %w", err)
	}
	return nil
}

// bindAll binds paths, each once, without those that lie below another one.
func (r *root) bindAll(paths []string) error {
	slices.Sort(paths)
	last := ""
	for _, path := range paths {
		if last != "" && within(path, last) {
			continue
		}
		last = path
		if err := r.bind(path, path); err != nil {
			return err
		}
	}
	return nil
}

// layersPath is where the command sees what it has added to caches, read-only.
const layersPath = "/run/layers"

// layerUpper is the folder of a layer that has what was added.
const layerUpper = "upper"

// maxLinks bounds the symbolic links of one path.
const maxLinks = 40

// link makes the folders above path in the new root, with the symbolic links that lead to it,
// and returns its path without links.
func (r *root) link(path string) (string, error) {
	rest, at := strings.Split(strings.Trim(filepath.Clean(path), "/"), "/"), "/"
	for links := 0; len(rest) > 0; {
		next := filepath.Join(at, rest[0])
		if r.made[next] && len(rest) > 1 {
			rest, at = rest[1:], next
			continue
		}
		info, err := os.Lstat(next)
		if err != nil {
			return "", err
		}
		rest = rest[1:]
		if info.Mode()&os.ModeSymlink == 0 {
			if len(rest) > 0 {
				if err := r.folder(next); err != nil {
					return "", err
				}
				r.made[next] = true
			}
			at = next
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("%s: too many symbolic links", path)
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", err
		}
		// It may lie in a folder that is bound already.
		if err := os.Symlink(target, r.dir+next); err != nil && !os.IsExist(err) && !isReadOnly(err) {
			return "", err
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(at, target)
		}
		rest, at = append(strings.Split(strings.Trim(filepath.Clean(target), "/"), "/"), rest...), "/"
	}
	return at, nil
}

func isReadOnly(err error) bool {
	if e, ok := err.(*os.LinkError); ok { //nolint:errorlint // what os.Symlink returns
		err = e.Err
	}
	return err == unix.EROFS || err == unix.EACCES || err == unix.EPERM || err == unix.ENOENT //nolint:errorlint // a bare errno
}

// folder makes a folder in the new root.
func (r *root) folder(path string) error {
	err := os.MkdirAll(r.dir+path, 0o755)
	if err != nil && os.IsExist(err) {
		return nil
	}
	return err
}

// maxCopied is the size in bytes up to which a file is copied in place of being mounted, which
// takes longer. Most files of /etc are smaller.
const maxCopied = 64 << 10

// bind makes a file or folder of the host visible at a path of the new root.
func (r *root) bind(source, path string) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	target := r.dir + path
	if _, err := os.Lstat(target); err != nil {
		var text []byte
		small := info.Mode().IsRegular() && info.Size() <= maxCopied
		switch {
		case info.IsDir():
			err = os.MkdirAll(target, 0o755)
		default:
			if err = os.MkdirAll(filepath.Dir(target), 0o755); err == nil && small {
				text, err = os.ReadFile(source)
			}
			if err == nil {
				err = os.WriteFile(target, text, 0o644)
			}
		}
		if err != nil {
			return fmt.Errorf("make a place for %s: %w", path, err)
		}
		if small {
			return nil
		}
	}
	if err := unix.Mount(source, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("bind %s: %w", source, err)
	}
	return nil
}

// seal makes everything read-only that is mounted so far, and closes it for devices and
// programs of other users.
func (r *root) seal() error {
	attributes := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if err := unix.MountSetattr(unix.AT_FDCWD, r.dir, unix.AT_RECURSIVE, &attributes); err != nil {
		return fmt.Errorf("make the root read-only: %w", err)
	}
	return nil
}

// open makes a mount writable again.
func (r *root) open(path string) error {
	if err := unix.MountSetattr(unix.AT_FDCWD, r.dir+path, 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("make %s writable: %w", path, err)
	}
	return nil
}

// mask covers what is hidden below the given real paths.
func (r *root) mask(paths []string) error {
	for _, h := range r.hide {
		if slices.ContainsFunc(paths, func(path string) bool { return path != h && within(h, path) }) {
			if err := r.cover(h); err != nil {
				return err
			}
		}
	}
	return nil
}

// cover puts an empty folder or file over a path of the new root.
func (r *root) cover(path string) error {
	target := r.dir + path
	info, err := os.Lstat(target)
	if err != nil { // it is not in the new root
		return nil //nolint:nilerr // likewise
	}
	if err := coverWith(target, info.IsDir()); err != nil {
		return fmt.Errorf("hide %s: %w", path, err)
	}
	return nil
}

// coverWith mounts an empty folder or file.
func coverWith(target string, dir bool) error {
	if dir {
		return unix.Mount("tmpfs", target, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=1m")
	}
	return unix.Mount("/dev/null", target, "", unix.MS_BIND, "")
}

// layer shows a cache of the user at its place in the command's home. What the command
// changes goes to dir. Where the kernel has no such mount the cache of the command is empty,
// and where an earlier command has put a link that leads out of the home.
func (r *root) layer(c cache, home, dir string) {
	upper, work := filepath.Join(dir, layerUpper), filepath.Join(dir, "work")
	for _, d := range []string{upper, work} {
		if os.MkdirAll(d, 0o700) != nil {
			return
		}
	}
	inside, err := os.OpenRoot(r.dir + home)
	if err != nil {
		return
	}
	defer inside.Close()
	if inside.MkdirAll(c.To, 0o700) != nil {
		return
	}
	place, err := inside.Open(c.To)
	if err != nil {
		return
	}
	defer place.Close()
	target := "/proc/self/fd/" + strconv.Itoa(int(place.Fd())) // whatever is at the path meanwhile
	if strings.ContainsAny(c.From+dir, ",:\\") {
		return // characters of the mount's options
	}
	// A cache that cannot be shown makes the command slower, and nothing else.
	_ = unix.Mount("overlay", target, "overlay", unix.MS_NOSUID|unix.MS_NODEV, "userxattr,lowerdir="+c.From+",upperdir="+upper+",workdir="+work)
}

// devices fills /dev.
func (r *root) devices() error {
	dev := r.dir + "/dev"
	if err := unix.Mount("tmpfs", dev, "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=755,size=1m"); err != nil {
		return fmt.Errorf("mount /dev: %w", err)
	}
	// The devices are those of the host: a new file of a device could not be made.
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		f, err := os.OpenFile(filepath.Join(dev, name), os.O_CREATE|os.O_WRONLY, 0o666)
		if err != nil {
			return err
		}
		f.Close()
		if err := unix.Mount("/dev/"+name, filepath.Join(dev, name), "", unix.MS_BIND, ""); err != nil {
			if _, missing := os.Stat("/dev/" + name); missing != nil {
				continue
			}
			return fmt.Errorf("bind /dev/%s: %w", name, err)
		}
		// A read-only mount keeps its mode and times, which are those of the host, and does not
		// keep the device from being written.
		attributes := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC}
		if err := unix.MountSetattr(unix.AT_FDCWD, filepath.Join(dev, name), 0, &attributes); err != nil {
			return fmt.Errorf("make /dev/%s read-only: %w", name, err)
		}
	}
	for _, m := range []struct{ name, kind, options string }{
		{"shm", "tmpfs", "mode=1777,nr_inodes=100000,size=1g"},
		{"pts", "devpts", "newinstance,ptmxmode=0666,mode=620,max=256"},
	} {
		if err := os.Mkdir(filepath.Join(dev, m.name), 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.kind, filepath.Join(dev, m.name), m.kind, unix.MS_NOSUID|unix.MS_NOEXEC, m.options); err != nil {
			return fmt.Errorf("mount /dev/%s: %w", m.name, err)
		}
	}
	for name, target := range map[string]string{"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"} {
		if err := os.Symlink(target, filepath.Join(dev, name)); err != nil {
			return err
		}
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, dev, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("make /dev read-only: %w", err)
	}
	return nil
}

// processes mounts /proc of the PID namespace, read-only: the superuser of the host owns files
// there that change the whole system, also when it has no capabilities.
func (r *root) processes() error {
	proc := r.dir + "/proc"
	if err := os.MkdirAll(proc, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("proc", proc, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return r.maskMachine(proc)
}

// ofMachine are files of /proc that show keys and addresses of the whole machine to every user, and
// secrets of its network to the superuser.
var ofMachine = []string{"keys", "key-users", "iomem", "sys/net/ipv4/tcp_fastopen_key", "sys/net/ipv6/conf/*/stable_secret"}

// maskMachine covers those of /proc, and all that only the superuser reads: it reads them by owning
// them, without a capability.
func (r *root) maskMachine(proc string) error {
	var hidden []string
	for _, pattern := range ofMachine {
		found, _ := filepath.Glob(proc + "/" + pattern) // the patterns are valid
		hidden = append(hidden, found...)
	}
	for _, name := range names(proc) {
		var s unix.Stat_t
		if (name[0] < '0' || name[0] > '9') && unix.Lstat(proc+"/"+name, &s) == nil && s.Mode&unix.S_IFMT == unix.S_IFREG && s.Mode&0o044 == 0 {
			hidden = append(hidden, proc+"/"+name)
		}
	}
	for _, path := range hidden {
		if err := unix.Mount("/dev/null", path, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("hide %s: %w", strings.TrimPrefix(path, proc), err)
		}
	}
	return nil
}
