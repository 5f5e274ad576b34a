package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	llsys "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

func init() {
	if text := os.Getenv(Marker); text != "" {
		become(text)
	}
}

// start returns the process that carries a plan: this program again.
func start(text string) (*exec.Cmd, error) {
	return &exec.Cmd{Path: "/proc/self/exe", Args: []string{"confine"}, Dir: "/", Env: []string{Marker + "=" + text}}, nil
}

// become restricts this process and executes the command of a plan instead of the
// program. When something cannot be restricted, nothing is executed.
func become(text string) {
	var p plan
	err := json.Unmarshal([]byte(text), &p)
	if err != nil {
		os.Exit(126)
	}
	// It is opened before the folders are closed, and the command does not get it.
	report, err := os.OpenFile(p.Refused, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		err = p.execute()
		_, _ = report.WriteString(err.Error()) // else the exit code alone says it
	}
	os.Exit(126)
}

// execute returns only with an error.
func (p *plan) execute() error {
	if err := os.Chdir(p.Dir); err != nil {
		return err
	}
	for name, limit := range map[int]uint64{
		unix.RLIMIT_CORE: 0, unix.RLIMIT_DATA: p.Limits.Memory, unix.RLIMIT_FSIZE: p.Limits.FileSize,
		unix.RLIMIT_NOFILE: p.Limits.Files, unix.RLIMIT_NPROC: p.Limits.Processes,
	} {
		if err := lower(name, limit); err != nil {
			return fmt.Errorf("limit %d: %w", name, err)
		}
	}
	if level() > 0 {
		if err := p.restrict(); err != nil {
			return fmt.Errorf("restrict the command by Landlock: %w", err)
		}
	}
	return syscall.Exec(p.Path, p.Args, p.Env)
}

// lower lowers a limit, and leaves one that is lower.
func lower(name int, limit uint64) error {
	var have unix.Rlimit
	if err := unix.Getrlimit(name, &have); err != nil {
		return err
	}
	limit = min(limit, have.Max)
	return unix.Setrlimit(name, &unix.Rlimit{Cur: limit, Max: limit})
}

// restrict applies what this kernel has of Landlock.
func (p *plan) restrict() error {
	var dirs, files []string
	for _, path := range p.Read {
		switch info, err := os.Stat(path); {
		case err != nil:
		case info.IsDir():
			dirs = append(dirs, path)
		default:
			files = append(files, path)
		}
	}
	rules := []landlock.Rule{
		landlock.RODirs(dirs...), landlock.ROFiles(files...),
		landlock.RWDirs(p.Write...).WithRefer(),
		landlock.RWFiles("/dev/null", "/dev/zero", "/dev/full").IgnoreIfMissing(),
		landlock.ROFiles("/dev/random", "/dev/urandom").IgnoreIfMissing(),
	}
	// The network stays open, signals and abstract sockets stay inside where the kernel
	// can see to it.
	if err := landlock.V5.BestEffort().RestrictPaths(rules...); err != nil {
		return err
	}
	return landlock.V6.BestEffort().RestrictScoped()
}

// toolchains are folders below the user's home where version managers keep programs,
// and which have no credentials.
var toolchains = []string{
	".pyenv", ".nvm", ".rbenv", ".nodenv", ".goenv", ".asdf", ".volta", ".sdkman", ".rustup", ".deno", ".bun", ".dotnet", ".ghcup",
	".local/share/mise", ".local/share/fnm", ".local/share/uv", ".local/share/pnpm", "go/pkg", ".cargo/registry", ".cargo/git",
}

// readable are the folders of the system, those of PATH, and toolchains. The rest of the
// user's home is not among them.
func readable() []string {
	list := []string{"/bin", "/sbin", "/usr", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/snap", "/proc", "/sys", "/run/systemd/resolve", "/var/lib/alternatives"}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(dir) && filepath.Clean(dir) != "/" {
			list = append(list, dir)
		}
	}
	if home, err := os.UserHomeDir(); err == nil {
		for _, dir := range toolchains {
			list = append(list, filepath.Join(home, dir))
		}
	}
	return list
}

// level is the version of Landlock that the kernel has, 0 without it.
var level = sync.OnceValue(func() int {
	v, err := llsys.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return v
})

// Missing says what this machine cannot keep commands from, in words for people.
func Missing() []string { return missing() }

var missing = sync.OnceValue(func() (list []string) {
	switch v := level(); {
	case v == 0:
		list = append(list, "Landlock is not in this kernel, or not enabled: commands can read the home folder and write outside of the checkout")
	case v < 3:
		list = append(list, "Landlock of this kernel is older than version 3 (Linux 6.2): commands can truncate files outside of the checkout")
	case v < 6:
		list = append(list, "Landlock of this kernel is older than version 6 (Linux 6.12): commands can send signals to processes of this user")
	}
	if _, err := os.Stat("/proc/self/exe"); errors.Is(err, os.ErrNotExist) {
		list = append(list, "/proc is not mounted: no command can be executed")
	}
	return list
})
