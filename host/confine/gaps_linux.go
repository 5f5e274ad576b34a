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
	cgroup     error // why there is none for a command
}

// kernel returns what this machine has. The first call takes as long as a command.
var kernel = sync.OnceValue(func() machine {
	m := probe()
	if v, err := llsys.LandlockGetABIVersion(); err == nil {
		m.landlock = v
	}
	return m
})

// probeMarker is the value of [Marker] with which a process probes for namespaces. A host hides
// its environment and therefore cannot map users of a new user namespace; a child can.
const probeMarker = "probe"

// A probed is what a probe prints: why something cannot be had here, "" if it can.
type probed struct{ Namespaces, Cgroup string }

// probe returns the namespaces and the cgroup that commands have here.
func probe() machine {
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{"confine"}, Dir: "/", Env: []string{Marker + "=" + probeMarker}}
	out, err := cmd.Output()
	var found probed
	if err == nil {
		err = json.Unmarshal(out, &found)
	}
	if err != nil {
		found = probed{Namespaces: err.Error()}
	}
	if found.Namespaces != "" {
		// A command of the same file system could write its cgroup.
		found.Cgroup = "it needs the namespaces"
	}
	why := func(text string) error {
		if text == "" {
			return nil
		}
		return errors.New(text)
	}
	return machine{namespaces: why(found.Namespaces), cgroup: why(found.Cgroup)}
}

// probeChild prepares the execution of a command and prints what cannot be had.
func probeChild() {
	var found probed
	if err := probePlan(&found); err != nil {
		found.Namespaces = err.Error()
	}
	text, _ := json.Marshal(found) // texts only
	_, _ = os.Stdout.Write(text)
	os.Exit(0)
}

// probePlan tries a plan with a cgroup, and without one where that fails. The error says why there are no namespaces.
func probePlan(found *probed) error {
	dir, err := os.MkdirTemp("", "sentinel-probe-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary folder
	p := plan{Dir: "/", Scratch: dir, Launch: dir, Layers: dir + "/" + scratchLayers, Write: []string{dir}, Limits: Limits{}.withDefaults(), Alone: true, Probe: true, Path: "/bin/true", Args: []string{"true"}}
	if err := errors.Join(os.Mkdir(dir+"/"+rootFolder, 0o700), os.WriteFile(dir+"/"+statusFile, nil, 0o600)); err != nil {
		return err
	}
	if p.Cgroup, err = newCgroup("/proc", p.Limits); err == nil {
		err = p.try()
		p.Cgroup.remove()
		p.Cgroup = nil
	}
	if err == nil {
		return nil
	}
	found.Cgroup = strings.ReplaceAll(err.Error(), "\n", "; ")
	return p.try()
}

// try starts the launcher of a plan and returns why it failed.
func (p *plan) try() error {
	if err := p.store(); err != nil {
		return err
	}
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
	switch {
	case k.cgroup == nil:
	case k.namespaces != nil:
		add(WallCgroup, "without namespaces, a command has no cgroup: the kernel does not bound the memory of all its processes together")
	default:
		add(WallCgroup, "no cgroup can be made here (%v): memory is watched ten times a second, which a command that hides its memory in the kernel can evade, and the kernel bounds no processes of the superuser; start the host by a unit of systemd (254 or newer) with Delegate=memory pids and DelegateSubgroup=host, as sentinel unit writes it, or as the superuser", k.cgroup)
	}
	if _, err := os.Stat("/proc/self/exe"); errors.Is(err, os.ErrNotExist) {
		add(WallNamespaces, "/proc is not mounted: no command can be executed")
	}
	return list
}
