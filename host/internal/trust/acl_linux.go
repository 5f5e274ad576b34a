package trust

import "syscall"

// hasACL reports whether a file has an access list beside its mode. The group's bits
// of the mode are then the most that any user or group of the list may do.
func hasACL(path string) bool {
	n, err := syscall.Getxattr(path, "system.posix_acl_access", nil)
	return err == nil && n > 0
}
