package doctor

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/trust"
	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// shownFaults is how many files and folders a finding names.
const shownFaults = 5

// trust looks for files and folders that the host would refuse to obey, because
// others own them or may write to them, or because they came with a project.
func (x *examination) trust(context.Context) Check {
	if !trust.Supported {
		return warn("see that the access lists of the state folder, the configuration and the folders of definitions and plugins let no other user write",
			"this system has no Unix modes: who may write what is obeyed is not checked")
	}
	paths := x.opt.Obeyed
	if x.opt.Plugins != "" {
		modules, err := regularfile.List(x.opt.Plugins, ".wasm")
		if err != nil {
			return fail("see that this user may read the folder", "%v", err)
		}
		paths = append(append(paths[:len(paths):len(paths)], x.opt.Plugins), modules...)
	}
	var faults, mends []string
	note := func(err error) {
		faults = append(faults, err.Error())
		if e := abi.As(err); e != nil && e.Hint != "" {
			mends = append(mends, e.Hint)
		}
	}
	if x.opt.State != "" {
		if err := x.opt.Trust.CheckFolder(x.opt.State); err != nil {
			note(err)
		}
	}
	for _, path := range paths {
		if err := x.opt.Trust.Check(path); err != nil {
			note(err)
		}
	}
	links, err := x.opt.Trust.Content().Links()
	if err != nil {
		return fail("see that this user may read the folder", "%v", err)
	}
	for _, err := range links {
		note(err)
	}
	if len(faults) > 0 {
		return fail(strings.Join(unique(mends), "; "), "%s", summary(unique(faults)))
	}
	items, err := x.opt.Trust.Content().Pending(x.opt.State)
	if err != nil {
		return fail("see that this user may read the folder", "%v", err)
	}
	if len(items) > 0 {
		names := make([]string, 0, len(items))
		for _, i := range items {
			names = append(names, i.Key)
		}
		return warn("sentinel trust shows what they execute and asks", "not used, because they came with the folder and you have not trusted them: %s", summary(names))
	}
	if trusted := x.opt.Trust.Paths(); len(trusted) > 0 {
		return ok("all that is obeyed is this user's or root's alone; not looked at, because it is trusted: %s", strings.Join(trusted, string(filepath.ListSeparator)+" "))
	}
	return ok("all that is obeyed is this user's or root's alone")
}

// unique drops what was there before, as when many files are in one folder.
func unique(list []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out[:min(len(out), shownFaults)]
}

// summary joins faults.
func summary(faults []string) string {
	if len(faults) == shownFaults {
		faults = append(faults, fmt.Sprintf("and perhaps others: only the first %d are named", shownFaults))
	}
	return strings.Join(faults, "; ")
}
