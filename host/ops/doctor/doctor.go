// Package doctor is how a host EXAMINES itself: it looks at everything that
// loading sentinels and running their steps depends on, and says for each thing
// that is not well how to mend it.
//
// It changes nothing, needs no server, and works while a process has the state
// open and when the store is damaged. What it cannot know itself, such as
// whether the configuration is valid, it is given as a function.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/trust"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Status says how a thing is.
type Status string

// The statuses. Warn is what works and may not for long, or not entirely.
const (
	OK   Status = "ok"
	Warn Status = "warn"
	Fail Status = "fail"
)

// A Check is the finding about one thing.
type Check struct {
	Name   string `json:"name"`
	Status Status `json:"status"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"` // what to do; never empty unless Status is ok
}

// A Probe looks at something that this package does not know. Its detail is
// shown where it found nothing wrong. The Hint of an [*abi.Error] is the mend.
type Probe func(ctx context.Context) (detail string, err error)

// A ModelProbe examines one model.
type ModelProbe struct {
	Model string
	Probe Probe
}

// Options say where to look. The zero value looks at the machine alone.
type Options struct {
	// State is the state folder. Default: it is not looked at.
	State string
	// Plugins is the folder of plugins of others. Default: there is none.
	Plugins string
	// Obeyed are further files and folders that the host obeys, such as its
	// configuration and definitions. With State and Plugins they are held to Trust.
	Obeyed []string
	// Trust decides which files are obeyed. Default: those that are the user's or
	// root's alone, with the folders above.
	Trust *trust.Policy
	// Cache is the folder of compiled plugins of the user. Default: there is none.
	Cache string
	// Git and Shell are the programs that steps run. Default git and sh.
	Git, Shell string
	// Child starts helper processes. Default: this program again.
	Child runtime.Child
	// Config reports whether the configuration is valid, Model whether a model
	// is configured and its key there, Secrets whether those that plugins may
	// send have values, Environment whether other processes cannot read the
	// variables of the host, Server whether a server answers. None may reach out
	// of this machine. Default: not looked at.
	Config, Model, Secrets, Environment, Server Probe
	// Confinement reports whether commands of acceptance criteria can be confined.
	Confinement Probe
	// Definitions reports whether two files of definitions have the same id.
	Definitions Probe
	// Notifications reports whether people are notified of what waits for them.
	Notifications Probe
	// Models are further probes, each of a model, by the names of their checks. They send requests to
	// the servers of the models, so they are made only if they are given. Default: none.
	Models []ModelProbe
	// Only names the checks to make; the others are left out. Default: all.
	Only []string
	// Limit is the time for each check. Default 40 s.
	Limit time.Duration
	// Now tells the time. Default time.Now.
	Now func() time.Time
}

// examination is one Run.
type examination struct {
	opt   Options
	state runtime.StateInfo
	found error // why state could not be looked at
}

// Run makes all checks, one after the other, and returns them in the order in
// which they should be mended. A check that takes too long has failed.
func Run(ctx context.Context, opt Options) []Check {
	if opt.Git == "" {
		opt.Git = "git"
	}
	if opt.Shell == "" {
		opt.Shell = "sh"
	}
	if opt.Limit <= 0 {
		opt.Limit = 40 * time.Second
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	x := &examination{opt: opt}
	type named struct {
		name string
		do   func(context.Context) Check
	}
	var all []named
	if opt.State != "" {
		x.state, x.found = runtime.InspectState(opt.State)
		all = append(all,
			named{"state folder", x.folder}, named{"disk", x.disk}, named{"store owner", x.owner}, named{"store closed", x.closed},
			named{"store", x.store}, named{"snapshots", x.snapshots}, named{"cache folder", x.cache})
	}
	if opt.State != "" || opt.Plugins != "" || len(opt.Obeyed) > 0 {
		all = append(all, named{"trust", x.trust})
	}
	all = append(all, named{"child processes", x.child}, named{"open files", x.openFiles}, named{"file watches", x.watches},
		named{"clock", x.clock}, named{"time zones", x.zones}, named{"shell", x.shell}, named{"git", x.git})
	if opt.Plugins != "" {
		all = append(all, named{"plugins folder", x.plugins})
	}
	for _, p := range []struct {
		name  string
		probe Probe
		fix   string
	}{
		{"configuration", opt.Config, "mend the configuration file; sentinel config show --origin says where each value comes from"},
		{"definitions", opt.Definitions, "give one of the two files another id, or remove it"},
		{"model", opt.Model, "configure a model, and set the variable of its key"},
		{"secrets", opt.Secrets, "set SENTINEL_SECRET_NAME, or mend what the configuration says under secrets"},
		{"environment", opt.Environment, "keep secrets in files of mode 0600 and name those under secrets in the configuration"},
		{"server", opt.Server, "start one with sentinel serve"},
		{"confinement", opt.Confinement, "use a kernel from Linux 6.12 on with Landlock among its security modules; or approve commands of checks with care. Tools below the home are found once verify.read has their folder"},
		{"notifications", opt.Notifications, "sentinel init --template notify"},
	} {
		if p.probe != nil {
			all = append(all, named{p.name, func(ctx context.Context) Check { return probed(ctx, p.probe, p.fix) }})
		}
	}
	for _, p := range opt.Models {
		fix := "mend the provider under models.providers of the configuration; sentinel help models has an example for each"
		all = append(all, named{"model " + p.Model, func(ctx context.Context) Check { return probed(ctx, p.Probe, fix) }})
	}
	out := make([]Check, 0, len(all))
	for _, c := range all {
		if len(opt.Only) > 0 && !slices.Contains(opt.Only, c.name) {
			continue
		}
		out = append(out, x.within(ctx, c.name, c.do))
	}
	return out
}

// within makes one check and does not wait longer than the limit. A check that
// hangs, on a dead network disk perhaps, is left behind: it holds nothing.
func (x *examination) within(ctx context.Context, name string, do func(context.Context) Check) Check {
	ctx, cancel := context.WithTimeout(ctx, x.opt.Limit)
	defer cancel()
	done := make(chan Check, 1)
	go func() { done <- do(ctx) }()
	var c Check
	select {
	case c = <-done:
	case <-ctx.Done():
		c = fail("look again, or see whether its disk answers", "not through in %s", x.opt.Limit)
	}
	c.Name = name
	return c
}

func ok(format string, args ...any) Check {
	return Check{Status: OK, Detail: fmt.Sprintf(format, args...)}
}

func warn(fix, format string, args ...any) Check {
	return Check{Status: Warn, Detail: fmt.Sprintf(format, args...), Fix: fix}
}

func fail(fix, format string, args ...any) Check {
	return Check{Status: Fail, Detail: fmt.Sprintf(format, args...), Fix: fix}
}

func probed(ctx context.Context, probe Probe, fix string) Check {
	detail, err := probe(ctx)
	if err == nil {
		return ok("%s", detail)
	}
	if e := abi.As(err); e != nil && e.Hint != "" {
		fix = e.Hint
	}
	if errors.As(err, new(minorError)) {
		return warn(fix, "%v", err)
	}
	return fail(fix, "%v", err)
}

// Minor marks what a [Probe] found as no more than a warning.
func Minor(err error) error { return minorError{err} }

type minorError struct{ error }

func (e minorError) Unwrap() error { return e.error }

// Worst returns the worst status of checks, ok for none.
func Worst(checks []Check) Status {
	worst := OK
	for _, c := range checks {
		if c.Status == Fail || c.Status == Warn && worst == OK {
			worst = c.Status
		}
	}
	return worst
}

// child starts a helper process.
func (x *examination) child(ctx context.Context) Check {
	if err := runtime.CheckChild(ctx, x.opt.Child); err != nil {
		return fail("see whether the program's file may be executed and how many processes this user may have (ulimit -u); without a child slow conditions are refused", "%v", err)
	}
	return ok("one was started and ended")
}

// private reports whether another user may open a folder or file, or it is
// another user's.
func private(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !modesCount {
		return nil
	}
	if extra := info.Mode().Perm() & 0o077; extra != 0 {
		return fmt.Errorf("others may use %s: its mode is %#o", path, info.Mode().Perm())
	}
	if owner, known := ownerOf(info); known && owner != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d, this is user %d", path, owner, os.Geteuid())
	}
	return nil
}
