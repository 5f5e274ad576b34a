package doctor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
)

// fewOpenFiles is the number of open files below which 200 runs with a shell
// each do not fit.
const fewOpenFiles = 1024

// openFiles looks at the limit that the Go runtime has raised already, as far as
// it may: from the soft to the hard one.
func (x *examination) openFiles(context.Context) Check {
	n, known := fileLimit()
	const fix = "raise the limit: ulimit -n 65536, or LimitNOFILE= of the service"
	switch {
	case !known:
		return ok("the system has no such limit, or does not say")
	case n < 256:
		return fail(fix, "this process may open %d files", n)
	case n < fewOpenFiles:
		return warn(fix, "this process may open %d files", n)
	}
	return ok("this process may open %d files", n)
}

// watches looks at the limits for watched folders, where there are any.
func (x *examination) watches(context.Context) Check {
	for _, l := range []struct {
		name string
		few  int
	}{{"max_user_watches", 8192}, {"max_user_instances", 32}} {
		text, err := os.ReadFile("/proc/sys/fs/inotify/" + l.name)
		if err != nil {
			return ok("this system has no limit for them, or does not say")
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err == nil && n < l.few {
			return warn(fmt.Sprintf("sysctl fs.inotify.%s=%d; until then folders are looked at from time to time", l.name, l.few*8), "fs.inotify.%s is %d", l.name, n)
		}
	}
	return ok("enough for the folders of a project")
}

const (
	clockSample = 50 * time.Millisecond
	clockDrift  = 20 * time.Millisecond // of a sample; a clock that is slewed has less than 0.05 % of it
)

// clock compares the clock of the wall with the one that never jumps, and both
// with the newest file of the state folder.
func (x *examination) clock(ctx context.Context) Check {
	const fix = "set the clock and keep it set, with chrony or systemd-timesyncd"
	began := x.opt.Now()
	timer := time.NewTimer(clockSample)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	now := x.opt.Now()
	// Round(0) takes the steady reading away, so that the two can be compared.
	steady, wall := now.Sub(began), now.Round(0).Sub(began.Round(0))
	switch {
	case now.Year() < 2025:
		return fail(fix, "it is %s by the clock", now.Format(time.DateOnly))
	case (wall - steady).Abs() > clockDrift:
		return warn(fix, "the clock moved by %s in %s", wall, steady)
	}
	if x.state.Store != "" {
		if info, err := os.Stat(x.state.Store); err == nil && info.ModTime().Sub(now) > time.Minute {
			return warn(fix+"; schedules wait until the old time comes again", "the store was written at %s, which is yet to come: the clock was set back", info.ModTime().Format(time.RFC3339))
		}
	}
	return ok("it is %s", now.Format(time.RFC3339))
}

// zones asks for two zones that no database lacks. Go looks in the system, in
// ZONEINFO, and in what the program brings along.
func (x *examination) zones(context.Context) Check {
	for _, name := range []string{"Europe/Berlin", "America/New_York"} {
		if _, err := time.LoadLocation(name); err != nil {
			return warn("install tzdata, or set ZONEINFO; schedules with a time zone need it", "%v", err)
		}
	}
	if err := LocalZone(); err != nil {
		return warn("set TZ to a name such as Europe/Berlin, or not at all", "%v", err)
	}
	return ok("known; the local one is %s", zoneOf(x.opt.Now(), os.Getenv("TZ"), "/etc/localtime"))
}

// zoneOf names the local time zone with its offset: by TZ, or by the file that the link of the system leads
// to. Go calls it Local.
func zoneOf(now time.Time, tz, link string) string {
	offset := now.Local().Format("UTC-07:00")
	name := strings.TrimPrefix(tz, ":")
	if name == "" {
		name, _ = filepath.EvalSymlinks(link) // else the offset alone
	}
	if _, in, found := strings.Cut(filepath.ToSlash(name), "zoneinfo/"); found {
		name = in
	}
	if name == "" || filepath.IsAbs(name) {
		return offset
	}
	return name + ", " + offset
}

// LocalZone returns an error if TZ names no time zone: schedules without a zone of their
// own then follow UTC.
func LocalZone() error {
	name := strings.TrimPrefix(os.Getenv("TZ"), ":")
	if name == "" || filepath.IsAbs(name) && fileExists(name) {
		return nil
	}
	if _, err := time.LoadLocation(name); err != nil {
		return fmt.Errorf("the variable TZ names no time zone: %q; local times are those of UTC", name)
	}
	return nil
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// absolute finds a program by the PATH and refuses one that depends on the
// current folder.
func absolute(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("%s is found as %s, in a folder that depends on where one is", name, path)
	}
	return path, nil
}

// shell runs the shell once: a name in PATH says nothing about what is there.
func (x *examination) shell(ctx context.Context) Check {
	path, err := absolute(x.opt.Shell)
	if err != nil {
		return fail("install a POSIX shell and see that PATH names its folder", "%v", err)
	}
	if out, err := exec.CommandContext(ctx, path, "-c", "echo well").Output(); err != nil || strings.TrimSpace(string(out)) != "well" {
		return fail("see what "+path+" is", "%s does not do what a shell does: %v", path, err)
	}
	return ok("%s", path)
}

// Git before 2.31 does not know --end-of-options everywhere, which keeps names
// from being taken for options.
const oldGitMajor, oldGitMinor = 2, 31

var gitVersion = lazyregexp.New(`(\d+)\.(\d+)(\.\d+)*`)

// git asks for its version, without any configuration but its own.
func (x *examination) git(ctx context.Context) Check {
	path, err := absolute(x.opt.Git)
	if err != nil {
		return warn("install git; the git commands do not work without it", "%v", err)
	}
	cmd := exec.CommandContext(ctx, path, "version")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull}
	out, err := cmd.Output()
	m := gitVersion.FindStringSubmatch(string(out))
	if err != nil || m == nil {
		return warn("see what "+path+" is", "%s does not say its version: %v", path, err)
	}
	major, _ := strconv.Atoi(m[1]) // digits, as matched
	minor, _ := strconv.Atoi(m[2])
	if major < oldGitMajor || major == oldGitMajor && minor < oldGitMinor {
		return warn(fmt.Sprintf("install git %d.%d or newer", oldGitMajor, oldGitMinor), "%s is of version %s", path, m[0])
	}
	return ok("%s, version %s", path, m[0])
}
