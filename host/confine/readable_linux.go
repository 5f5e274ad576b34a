package confine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
)

// systemFolders are those of programs. What is below /etc, /sys and /run is listed one by one.
var systemFolders = []string{
	"/bin", "/sbin", "/usr", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix", "/snap",
	"/sys/devices/system", "/sys/fs/cgroup", "/sys/kernel/mm", "/sys/class/net", "/run/systemd/resolve", "/var/lib/alternatives",
}

// settings are what programs need of /etc: names of users and hosts, certificates, libraries,
// time zone and the settings of languages. Patterns are those of [filepath.Glob].
var settings = []string{
	"passwd", "group", "nsswitch.conf", "hosts", "host.conf", "hostname", "resolv.conf", "gai.conf", "services", "protocols", "networks", "rpc", "ethertypes", "netconfig",
	"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld.so.preload", "alternatives", "localtime", "timezone", "locale.conf", "locale.alias", "locale.gen", "default/locale",
	"ssl/certs", "ssl/cert.pem", "ssl/openssl.cnf", "ca-certificates", "ca-certificates.conf", "pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf", "pki/ca-trust", "crypto-policies",
	"os-release", "debian_version", "lsb-release", "redhat-release", "alpine-release", "arch-release", "system-release",
	"bash.bashrc", "profile", "profile.d", "inputrc", "shells", "login.defs", "terminfo", "mime.types", "magic", "fonts", "papersize",
	"java*", "python3*", "perl", "php", "dotnet", "maven/m2.conf", "maven/logging", "texmf", "chromium", "chromium.d", "iproute2",
}

// toolchains are folders below the user's home where version managers keep programs.
var toolchains = []string{
	".pyenv", ".nvm", ".rbenv", ".nodenv", ".goenv", ".asdf", ".volta", ".sdkman", ".rustup", ".deno", ".bun", ".dotnet", ".ghcup",
	".local/share/mise", ".local/share/fnm", ".local/share/uv", ".local/share/pnpm",
	".rvm", ".jenv", ".jabba", ".gvm", ".phpenv", ".plenv", ".rye", ".pixi", ".proto", ".swiftly", ".elan", ".juliaup", ".n", ".linuxbrew",
	".local/pipx", ".local/share/pipx", ".local/share/pypoetry", ".local/share/rtx", "miniconda3", "miniforge3", "anaconda3",
}

// downloads are caches below the user's home that a command reads where it does not have them
// in its own home.
var downloads = []string{"go/pkg", ".cargo/registry", ".cargo/git"}

// secretsOfToolchains are files and folders below those that hold credentials.
var secretsOfToolchains = []string{
	".dotnet/corefx", ".local/share/uv/credentials", ".deno/credentials.json", ".nvm/.npmrc", ".volta/.npmrc", ".bun/install/global/.npmrc", ".pyenv/pip.conf",
	"miniconda3/.condarc", "miniforge3/.condarc", "anaconda3/.condarc",
}

// readable are the folders of the system, those of PATH, what programs need of /etc, and
// toolchains. A folder of PATH that holds something hidden is not among them, and neither is one
// whose path leads by links below the home or what is hidden: who can write the folder above it
// would choose what is read.
func readable(hide []string, layered bool) []string {
	list := slices.Clone(systemFolders)
	for _, pattern := range settings {
		found, _ := filepath.Glob("/etc/" + pattern) // the patterns are valid
		list = append(list, found...)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = ""
	}
	realHome, err := filepath.EvalSymlinks(home)
	if err != nil {
		realHome = home
	}
	hidden := existing(append(slices.Clone(hide), home))
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil || !filepath.IsAbs(dir) || real == "/" {
			continue
		}
		straight := filepath.Clean(dir)
		if home != "" && within(straight, home) { // the home itself may be a link
			straight = filepath.Join(realHome, strings.TrimPrefix(straight, home))
		}
		// A link may have been left by an earlier command: it counts where only the superuser writes.
		if slices.ContainsFunc(hidden, func(h string) bool { return within(h, real) }) || real != straight && !ofSystem(real) {
			continue
		}
		list = append(list, dir)
	}
	folders := toolchains
	if !layered {
		folders = slices.Concat(toolchains, downloads)
	}
	for _, dir := range folders {
		if home != "" {
			list = append(list, filepath.Join(home, dir))
		}
	}
	return list
}

// Unreadable returns the folder below the user's home that a command would have to read besides
// those that it does, and read, for a program at path. It is "" if the command reads it, or if it is
// not below the home.
func Unreadable(path string, read []string) string {
	own, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	home, err := filepath.EvalSymlinks(own)
	if err != nil {
		return ""
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil || real == home || !within(real, home) {
		return ""
	}
	for _, dir := range existing(slices.Concat(readable(nil, true), read)) {
		if within(real, dir) && dir != home {
			return ""
		}
	}
	folder := filepath.Dir(real)
	if above := filepath.Dir(folder); slices.Contains([]string{"bin", "sbin", "shims"}, filepath.Base(folder)) && above != home {
		folder = above
	}
	return folder
}

// ofSystem reports whether a path is where only the superuser installs programs.
func ofSystem(path string) bool {
	return slices.ContainsFunc([]string{"/usr", "/bin", "/sbin", "/opt", "/nix/store", "/gnu/store", "/snap"}, func(dir string) bool { return within(path, dir) })
}

// credentials are files and folders of the user that are never readable.
func credentials() []string {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	list := []string{home}
	for _, name := range secretsOfToolchains {
		list = append(list, filepath.Join(home, name))
	}
	return list
}

// socketLine is a line of /proc/net/unix about a socket with a path: Num RefCount Protocol Flags Type
// St Inode Path.
var socketLine = lazyregexp.New(`^[0-9a-f]{8,16}: [0-9A-F]{8} [0-9A-F]{8} [0-9A-F]{8} [0-9]{4} [0-9]{2} +[0-9]+ (/[^\n]*)\n?$`)

// sockets are the Unix sockets of this machine that have a path below some folders. A read-only
// mount does not keep a process from connecting to them.
func sockets(folders []string) (list []string) {
	text, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return nil
	}
	below := existing(folders)
	// There may be tens of thousands, of which another command has made most.
	known := map[string]string{"/": "/"}
	for line := range strings.Lines(string(text)) {
		// A path may have line ends: what follows one is no line of the kernel, and names no socket.
		fields := socketLine.FindStringSubmatch(line)
		if fields == nil {
			continue
		}
		dir, name := filepath.Split(fields[1])
		dir = realFolder(filepath.Clean(dir), known)
		if dir == "" || !slices.ContainsFunc(below, func(path string) bool { return within(dir, path) }) {
			continue
		}
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil && info.Mode()&os.ModeSocket != 0 {
			list = append(list, filepath.Join(dir, name))
		}
	}
	return list
}

// realFolder returns the path of a folder without symbolic links, or nothing if there is none.
// Those that are known are not looked at again.
func realFolder(path string, known map[string]string) string {
	if real, ok := known[path]; ok {
		return real
	}
	real := realFolder(filepath.Dir(path), known)
	if real != "" {
		real = filepath.Join(real, filepath.Base(path))
		switch info, err := os.Lstat(real); {
		case err != nil:
			real = ""
		case info.Mode()&os.ModeSymlink != 0:
			if real, err = filepath.EvalSymlinks(real); err != nil {
				real = ""
			}
		}
	}
	known[path] = real
	return real
}

// caches are the caches of downloads and builds of this user that a command sees in its own
// home. It cannot change them. One with something in it that is hidden is left out: a variable
// can name a folder such as ~/.cache, and what is shown at another place is not covered there.
func caches(hide []string) (list []cache) {
	own, err := os.UserHomeDir()
	if err != nil {
		own = "" // variables may name some
	}
	usual := cacheFolders(own, func(string) string { return "" })
	for _, c := range cacheFolders(own, os.Getenv) {
		if !filepath.IsAbs(c.from) {
			continue
		}
		// Variables may name a folder in a workspace, where an earlier command may have left a link
		// that leads anywhere.
		real, err := filepath.EvalSymlinks(c.from)
		if err != nil || real != filepath.Clean(c.from) && !slices.Contains(usual, c) {
			continue
		}
		if slices.ContainsFunc(hide, func(hidden string) bool { return within(hidden, real) || within(real, hidden) }) {
			continue
		}
		if info, err := os.Stat(c.from); err == nil && info.IsDir() {
			list = append(list, cache{From: c.from, To: c.to})
		}
	}
	return list
}

// A cacheFolder is a cache of a user, and where a command sees it below its home.
type cacheFolder struct{ from, to string }

// cacheFolders returns the caches of the user whose home is own.
func cacheFolders(own string, getenv func(string) string) []cacheFolder {
	first := func(paths ...string) string {
		for _, path := range paths {
			if filepath.IsAbs(path) {
				return path
			}
		}
		return ""
	}
	gopath, _, _ := strings.Cut(getenv("GOPATH"), string(os.PathListSeparator))
	cargo := first(getenv("CARGO_HOME"), filepath.Join(own, ".cargo"))
	return []cacheFolder{
		{first(getenv("GOCACHE"), filepath.Join(own, ".cache/go-build")), ".cache/go-build"},
		{first(getenv("GOMODCACHE"), filepath.Join(first(gopath, filepath.Join(own, "go")), "pkg/mod")), "go/pkg/mod"},
		{filepath.Join(own, ".npm/_cacache"), ".npm/_cacache"},
		{filepath.Join(own, ".cache/pip"), ".cache/pip"},
		{filepath.Join(own, ".cache/uv"), ".cache/uv"},
		{filepath.Join(own, ".cache/yarn"), ".cache/yarn"},
		{filepath.Join(cargo, "registry"), ".cargo/registry"},
		{filepath.Join(cargo, "git"), ".cargo/git"},
	}
}
