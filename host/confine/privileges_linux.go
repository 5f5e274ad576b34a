package confine

import (
	"fmt"
	"os"
	"unsafe"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"
)

// Bits of securebits(7): the superuser has no capabilities by being the superuser, and that
// cannot be changed back.
const noRoot = 1<<0 | 1<<1

// dropPrivileges takes all capabilities from this process, and the ways to get others. It is
// called on the main thread, which starts the command. A process without some capability
// cannot drop it, and needs not.
func dropPrivileges() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	for c := uintptr(0); ; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if err == unix.EINVAL || err == unix.EPERM {
			break
		}
		if err != nil {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, noRoot, 0, 0, 0); err != nil && err != unix.EPERM {
		return fmt.Errorf("secure bits: %w", err)
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil && err != unix.EINVAL {
		return fmt.Errorf("ambient capabilities: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	// Of all threads, because the process stays and is in reach of the command.
	if _, _, errno := psx.Syscall3(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none)), 0); errno != 0 {
		return fmt.Errorf("drop capabilities: %w", errno)
	}
	// The command cannot read or trace this process.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("not dumpable: %w", err)
	}
	return nil
}

// landlockVersions are configurations by version of the kernel's interface.
var landlockVersions = []landlock.Config{
	1: landlock.V1, 2: landlock.V2, 3: landlock.V3, 4: landlock.V4, 5: landlock.V5, 6: landlock.V6, 7: landlock.V7, 8: landlock.V8, 9: landlock.V9,
}

// movesVersion is the version with which files can be moved between folders.
const movesVersion = 2

// scopedVersion is the version with which signals and abstract sockets stay inside.
const scopedVersion = 6

// restrictFiles applies what this kernel has of Landlock. The network stays open.
func (p *plan) restrictFiles() error {
	version := min(p.Landlock, len(landlockVersions)-1)
	read := append([]string{"/proc"}, p.Read...) // the host's, if the command has none of its own
	write := append([]string{}, p.Write...)
	if !p.Alone && p.Folder != nil && len(write) > 0 {
		checkout, err := p.openRoot(write[0])
		if err != nil {
			return err
		}
		defer unix.Close(checkout)
		write[0] = fileOf(checkout)
	}
	if p.Alone { // nothing else exists
		read, write = []string{"/"}, append(write, "/tmp", "/var/tmp", "/dev/shm", "/dev/pts")
	}
	var dirs, files []string
	for _, path := range read {
		switch info, err := os.Stat(path); {
		case err != nil:
		case info.IsDir():
			dirs = append(dirs, path)
		default:
			files = append(files, path)
		}
	}
	folders, terminals := landlock.RWDirs(write...), landlock.RWFiles("/dev/tty", "/dev/ptmx").IgnoreIfMissing()
	if version >= 2 {
		folders = folders.WithRefer()
	}
	if version >= 5 {
		folders, terminals = folders.WithIoctlDev(), terminals.WithIoctlDev()
	}
	if version >= 9 {
		folders = folders.WithResolveUnix()
	}
	rules := []landlock.Rule{
		landlock.RODirs(dirs...), landlock.ROFiles(files...), folders, terminals,
		landlock.RWFiles("/dev/null", "/dev/zero", "/dev/full").IgnoreIfMissing(),
		landlock.ROFiles("/dev/random", "/dev/urandom").IgnoreIfMissing(),
	}
	// One call for files and scopes: each layer without rules for files refuses to move files
	// between folders.
	config := landlockVersions[version]
	config.HandledAccessNet = 0
	return config.BestEffort().Restrict(rules...)
}
