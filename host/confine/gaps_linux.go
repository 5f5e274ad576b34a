package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	llsys "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// A machine is what a kernel has for confining commands.
type machine struct {
	landlock   int   // version of the interface, 0 for none
	namespaces error // why there are none
}

// kernel returns what this machine has. The first call takes as long as a command.
var kernel = sync.OnceValue(func() machine {
	m := machine{namespaces: probe()}
	if v, err := llsys.LandlockGetABIVersion(); err == nil {
		m.landlock = v
	}
	return m
})

// probeMarker is the value of [Marker] with which a process probes for namespaces. A host hides
// its environment and therefore cannot map users of a new user namespace; a child can.
const probeMarker = "probe"

// probe returns why the namespaces of a command cannot be had here.
func probe() error {
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{"confine"}, Dir: "/", Env: []string{Marker + "=" + probeMarker}}
	out, err := cmd.Output()
	if text := strings.TrimSpace(string(out)); text != "" {
		return errors.New(text)
	}
	return err
}

// probeChild prepares the execution of a command and prints why it cannot be executed.
func probeChild() {
	fail := func(err error) {
		fmt.Println(err)
		os.Exit(1)
	}
	dir, err := os.MkdirTemp("", "sentinel-probe-")
	if err != nil {
		fail(err)
	}
	p := plan{Dir: "/", Scratch: dir, Launch: dir, Layers: dir + "/" + scratchLayers, Write: []string{dir}, Limits: Limits{}.withDefaults(), Alone: true, Probe: true, Path: "/bin/true", Args: []string{"true"}}
	err = errors.Join(os.Mkdir(dir+"/"+rootFolder, 0o700), os.WriteFile(dir+"/"+statusFile, nil, 0o600), p.store())
	if err == nil {
		err = p.try()
	}
	_ = os.RemoveAll(dir) // a temporary folder
	if err != nil {
		fail(err)
	}
	os.Exit(0)
}

// try starts the launcher of a plan and returns why it failed.
func (p *plan) try() error {
	cmd := p.process()
	cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
	cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	err := cmd.Run()
	if err == nil {
		return nil
	}
	var s status
	if text, readErr := os.ReadFile(p.Launch + "/" + statusFile); readErr == nil && len(text) > 0 {
		if json.Unmarshal(text, &s) == nil && s.Error != "" {
			return errors.New(s.Error)
		}
	}
	return err
}

func gaps() []Gap { return kernel().gaps() }

// gaps returns what this machine cannot keep commands from.
func (k machine) gaps() (list []Gap) {
	add := func(wall, format string, args ...any) { list = append(list, Gap{wall, fmt.Sprintf(format, args...)}) }
	if k.namespaces != nil {
		add(WallNamespaces, "this kernel or container gives no namespaces (%v): commands can learn names, sizes and times of all files of this user by stat and inotify, and use up its inotify instances, change modes and times of its files, read credentials below toolchains, connect to Unix sockets, see its processes, leave processes behind that start others without end, and are limited in memory, processes and open files one by one only", k.namespaces)
	}
	switch v := k.landlock; {
	case v == 0 && k.namespaces != nil:
		add(WallLandlock, "Landlock is not in this kernel, or not enabled: commands can read the home folder and write outside of the checkout")
	case v < movesVersion && k.namespaces == nil:
		add(WallLandlock, "Landlock is not in this kernel, not enabled, or older than version 2 (Linux 5.19): it does not back up the namespaces, and commands can connect to abstract sockets")
	case v < movesVersion:
		add(WallLandlock, "Landlock of this kernel is older than version 2 (Linux 5.19): commands can truncate files outside of the checkout, send signals to processes of this user and connect to abstract sockets, and cannot move files between folders")
	case v < 3 && k.namespaces != nil:
		add(WallLandlock, "Landlock of this kernel is older than version 3 (Linux 6.2): commands can truncate files outside of the checkout")
	case v < scopedVersion && k.namespaces != nil:
		add(WallLandlock, "Landlock of this kernel is older than version 6 (Linux 6.12): commands can send signals to processes of this user and connect to abstract sockets")
	case v < scopedVersion:
		add(WallLandlock, "Landlock of this kernel is older than version 6 (Linux 6.12): commands can connect to abstract sockets")
	}
	if !hasFilter {
		add(WallSeccomp, "system calls are not filtered on this processor")
	}
	if _, err := os.Stat("/proc/self/exe"); errors.Is(err, os.ErrNotExist) {
		add(WallNamespaces, "/proc is not mounted: no command can be executed")
	}
	return list
}
