// Package packaging writes what operating systems want to know of the PROCESS
// that loads sentinels: how it is started, when it is up, what it may touch.
package packaging

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Unit describes the service. Paths are absolute.
type Unit struct {
	// Program is the file of this program. Required.
	Program string
	// Dir is the folder that is served. Required.
	Dir string
	// Workspace is the project that runs work in. Required.
	Workspace string
	// State is the folder of the store. Default: Dir/state.
	State string
	// Account is whom the process runs as. Required, but for User.
	Account string
	// User says that the unit is one of a user's own manager. Default: of the
	// system's.
	User bool
	// Drain is how long steps under way may go on at the end. Default 20 s.
	Drain time.Duration
	// Env are further variables, such as where a configuration is: NAME=value.
	// Keys of models belong into a file that only root reads; the unit says how.
	Env []string
	// Args are further arguments of serve. Default none.
	Args []string
	// Records is the folder with what the account trusts of projects, which the process
	// adds to. It need not exist. Default none.
	Records string
}

// margin is what the process may take to close beyond the drain: cutting off
// what is left, ending shells, closing the store.
const margin = 25 * time.Second

// Text returns the unit as the text of a file. Each line that restrains the
// process says why, so that an administrator who loosens one knows what it gives up.
func (u Unit) Text() (string, error) {
	if u.State == "" {
		u.State = filepath.Join(u.Dir, "state")
	}
	if u.Drain <= 0 {
		u.Drain = 20 * time.Second
	}
	if err := u.check(); err != nil {
		return "", err
	}
	w := &lines{}
	u.about(w)
	u.service(w)
	u.restrain(w)
	w.add("", "[Install]")
	if u.User {
		// It runs while the user is logged in, or always with loginctl enable-linger.
		w.add("WantedBy=default.target")
	} else {
		w.add("WantedBy=multi-user.target")
	}
	return w.String(), nil
}

// check refuses what no quoting of systemd can carry.
func (u Unit) check() error {
	bad := func(format string, args ...any) error {
		return &abi.Error{Code: abi.BadFields, Permanent: true, Message: "write unit: " + fmt.Sprintf(format, args...)}
	}
	// The manager knows no current folder.
	for name, path := range map[string]string{"program": u.Program, "folder": u.Dir, "workspace": u.Workspace, "state folder": u.State} {
		if !filepath.IsAbs(path) {
			return bad("the %s %q is no absolute path", name, path)
		}
	}
	if strings.ContainsAny(u.Program, `"'\`) {
		return bad("systemd starts no program with a quote or backslash in its name: %q", u.Program)
	}
	if u.Account == "" && !u.User {
		return bad("no account is named that the process runs as")
	}
	if strings.HasSuffix(u.Account, `\`) {
		return bad("no account has a name that ends in a backslash: %q", u.Account)
	}
	// A line end would begin a setting of its own, which is how a folder's name
	// could become a command.
	all := append([]string{u.Program, u.Dir, u.Workspace, u.State, u.Account, u.Records}, u.Env...)
	for _, s := range append(all, u.Args...) {
		if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return bad("%q has a control character", s)
		}
	}
	return nil
}

// about is what the manager orders by.
func (u Unit) about(w *lines) {
	w.add("[Unit]",
		"Description=Sentinel, serving "+folder(u.Dir),
		"Documentation=https://github.com/sentinel-runtime/sentinel")
	if !u.User {
		w.why("Models, webhooks and git remotes are elsewhere. A run that finds no network retries, so waiting for it is enough.")
		w.add("After=network-online.target", "Wants=network-online.target")
	}
	w.why("A store that cannot be opened is not mended by trying again: after five starts in a minute the unit has failed, and people see it.")
	w.add("StartLimitIntervalSec=60", "StartLimitBurst=5")
}

// service is how the process begins and ends.
func (u Unit) service(w *lines) {
	w.add("", "[Service]")
	w.why("The process says itself when it is up: after files are loaded, runs resumed and triggers armed.")
	w.add("Type=notify", "NotifyAccess=main")
	w.why("With ten thousand runs, or a store to be looked through after a crash, that takes a while.")
	w.add("TimeoutStartSec=5min")
	args := []string{"serve", u.Dir}
	// What serve finds by itself is not said, so that the line shows what is
	// special here.
	if u.State != filepath.Join(u.Dir, "state") {
		args = append(args, "--state", u.State)
	}
	if filepath.Dir(u.Dir) != u.Workspace || filepath.Base(u.Dir) != ".sentinel" {
		args = append(args, "--workspace", u.Workspace)
	}
	// The manager starts no shell, so nothing but its own quoting counts.
	exec := []string{word(u.Program)}
	for _, arg := range append(args, u.Args...) {
		exec = append(exec, argument(arg))
	}
	w.add("ExecStart=" + strings.Join(exec, " "))
	w.add("WorkingDirectory=" + folder(u.Workspace))
	for _, e := range u.Env {
		w.add("Environment=" + word(e))
	}
	if !u.User {
		w.add("User=" + plain(u.Account))
		w.why("Keys of models, NAME=value a line, in a file of root's with mode 0600: they are in no file of the project, and in no list of processes. The dash: it need not be there.")
		w.add("EnvironmentFile=-/etc/sentinel/keys.env")
	} else {
		w.why("Keys of models, NAME=value a line, in a file with mode 0600. The dash: it need not be there.")
		w.add("EnvironmentFile=-%h/.config/sentinel/keys.env")
	}
	w.why(fmt.Sprintf("The first signal goes to the host alone, which lets steps under way end (%s) and ends their processes itself; what is left of the group is killed with it.", u.Drain))
	w.add("KillMode=mixed", "KillSignal=SIGTERM", fmt.Sprintf("TimeoutStopSec=%d", int((u.Drain+margin+time.Second-1)/time.Second)))
	w.why("After a crash runs go on where they were. A typing error (2), a bad configuration (3) and a store that another process has (7) are nothing that a restart mends.")
	w.add("Restart=on-failure", "RestartSec=2", "RestartPreventExitStatus=2 3 7")
	w.why("Each confined command gets a control group beside that of the host, so that the kernel bounds its memory and processes. systemd before 254 does not know the second line: there the host watches memory itself, see sentinel doctor.")
	w.add("Delegate=memory pids", "DelegateSubgroup=host")
	w.why("One descriptor for each shell, watcher and connection; the usual 1024 is little for hundreds of runs.")
	w.add("LimitNOFILE=65536")
}

// restrain takes away what steps do not need. What they do need, the project's
// folder and the network, they keep: sentinels build, test and push.
func (u Unit) restrain(w *lines) {
	w.add("")
	w.why("Neither the host nor a step becomes another user: sudo and other set-id programs do not work in here.")
	w.add("NoNewPrivileges=yes", "RestrictSUIDSGID=yes")
	w.why("What steps write is the account's alone.")
	w.add("UMask=0077")
	w.why("No step needs another kernel personality or the scheduler's real-time classes, with which one could stall the machine.")
	w.add("LockPersonality=yes", "RestrictRealtime=yes")
	w.why("Programs of this processor only: the filters of the kernel know its calls alone.")
	w.add("SystemCallArchitectures=native")
	if u.User {
		w.why("A user's own manager may not make the file system read-only for one service. To have that too, write the unit without --user.")
		return
	}
	w.why("Steps run shell lines. They see the whole system read-only, but for the project and the state; a project that builds elsewhere, such as in a cache below the home, needs one more ReadWritePaths line in a drop-in.")
	w.add("ProtectSystem=strict", "ProtectHome=read-only")
	for _, path := range u.writable() {
		w.add("ReadWritePaths=" + word(path))
	}
	if u.Records != "" {
		w.why("What the account has edited while the process served it is recorded as trusted. The dash: it need not be there.")
		w.add("ReadWritePaths=" + word("-"+u.Records))
	}
	w.why("A /tmp of its own: no other service's files to trip over or to be tripped by. The socket of the command line is in the state folder and stays reachable.")
	w.add("PrivateTmp=yes")
	w.why("No disks, no consoles, no raw memory; null, random and terminals stay.")
	w.add("PrivateDevices=yes")
	w.why("The kernel's settings, modules, log, clock and name are no step's business.")
	w.add("ProtectKernelTunables=yes", "ProtectKernelModules=yes", "ProtectKernelLogs=yes", "ProtectClock=yes", "ProtectHostname=yes")
	w.why("The port is above 1024 and every file the account's own, so there is no capability to keep.")
	w.add("CapabilityBoundingSet=", "AmbientCapabilities=")
	w.why("The API, models and remotes are IP, the socket of the command line is Unix, and names of interfaces come by netlink. Raw packets are nothing for a step.")
	w.add("RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK")
	w.why("Not here, and why: MemoryDenyWriteExecute, because step plugins are compiled to machine code while the process runs; RestrictNamespaces and SystemCallFilter, because builds and browsers that steps start make sandboxes of their own; ProtectControlGroups, because of Delegate; ProtectProc, because leftovers of a crash are found by their processes.")
}

// writable are the folders that are written to, none of them below another.
func (u Unit) writable() []string {
	var out []string
	// Each of them has to exist when the service starts, so as few as will do.
	for _, path := range []string{u.Workspace, u.Dir, u.State} {
		path = filepath.Clean(path)
		inside := false
		for _, other := range out {
			rel, err := filepath.Rel(other, path)
			inside = inside || err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
		}
		if !inside {
			out = append(out, path)
		}
	}
	return out
}
