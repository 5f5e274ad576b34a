// Package login decides whether users are who they claim to be.
package login

import (
	"crypto/subtle"
	"errors"

	"example.com/portal/lockout"
)

// Err is the one answer to every failure: it does not tell a wrong name from a
// wrong password.
var Err = errors.New("name or password is wrong")

// Check compares a password with the stored hash of it.
func Check(guard *lockout.Guard, name string, stored, given []byte) error {
	if guard.Locked(name) {
		return Err
	}
	if subtle.ConstantTimeCompare(stored, given) != 1 {
		guard.Failed(name)
		return Err
	}
	guard.Succeeded(name)
	return nil
}
