//go:build unix

package trust

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"slices"
	"strconv"
	"syscall"

	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
)

// Supported says that files have owners and modes here that keep others out.
const Supported = true

// judge returns why a file or folder is not trusted, nil if it is. above says that
// it is a folder on the way to what is asked about.
func (p *Policy) judge(path string, info fs.FileInfo, above bool) *fault {
	if f := p.judgeOwner(path, info); f != nil {
		return f
	}
	mode := info.Mode()
	if above && mode&fs.ModeSticky != 0 {
		return nil // only its owner can replace what is in it, and that one is trusted
	}
	if mode.Perm()&0o002 != 0 {
		return &fault{path, fmt.Sprintf("its mode is %#o, so that every user may write to it", mode.Perm()), "chmod go-w " + termtext.Quote(path)}
	}
	if mode.Perm()&0o020 == 0 {
		return nil
	}
	if hasACL(path) {
		return &fault{path, "an access list lets further users or groups write to it", "setfacl -b " + termtext.Quote(path) + " && chmod g-w " + termtext.Quote(path)}
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if ok && (int(s.Gid) == os.Getegid() || p != nil && slices.Contains(p.groups, int(s.Gid))) {
		return nil
	}
	return &fault{
		path, fmt.Sprintf("its mode is %#o, so that group %s may write to it, which is neither this user's own nor in trust.groups", mode.Perm(), groupName(s)),
		"chmod g-w " + termtext.Quote(path),
	}
}

// judgeOwner returns why the owner of a file, folder or link is not trusted.
func (p *Policy) judgeOwner(path string, info fs.FileInfo) *fault {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok || s.Uid == 0 || int(s.Uid) == os.Geteuid() {
		return nil
	}
	return &fault{
		path, fmt.Sprintf("it belongs to user %s, who is neither root nor the user of this process, %s", userName(int(s.Uid)), userName(os.Geteuid())),
		fmt.Sprintf("chown -h %d %s", os.Geteuid(), termtext.Quote(path)),
	}
}

// userName is a user as people know them.
func userName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return fmt.Sprintf("%s (%d)", u.Username, uid)
	}
	return strconv.Itoa(uid)
}

// groupName is the group of a file as people know it.
func groupName(s *syscall.Stat_t) string {
	if s == nil {
		return "?"
	}
	id := strconv.Itoa(int(s.Gid))
	if g, err := user.LookupGroupId(id); err == nil {
		return fmt.Sprintf("%s (%s)", g.Name, id)
	}
	return id
}
