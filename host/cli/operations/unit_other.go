//go:build !unix

package operations

import "errors"

// ownerID fails on systems whose users have no numbers; there is no systemd there
// either, but a unit may be written for another machine.
func ownerID(string) (string, error) { return "", errors.New("users have no numbers here") }
