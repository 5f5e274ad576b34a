package secret

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"filippo.io/age"

	"github.com/sentinel-runtime/sentinel/host/internal/atomicfile"
	"github.com/sentinel-runtime/sentinel/host/internal/trust"
	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Vault is the file in which `sentinel secret set` keeps values: a JSON object that is
// encrypted with age for the identity beside it.
//
// # Concurrency
//
// Safe for concurrent use, by several processes too: a writer locks the folder and replaces the
// file, so that a reader and a crash find the values before or after.
type Vault struct {
	dir   string
	trust *trust.Policy
}

// The files of a vault, in the folder of the user's configuration.
const (
	valuesFile   = "secrets.age"
	identityFile = "secrets.key"
)

// maxVault is the largest file of values, in bytes.
const maxVault = 1 << 20

// NewVault returns the vault in the folder of a configuration file, nil for no file.
func NewVault(config string, policy *trust.Policy) *Vault {
	if config == "" {
		return nil
	}
	return &Vault{filepath.Dir(config), policy}
}

// Files returns the paths of the values and of the identity.
func (v *Vault) Files() (values, identity string) {
	return filepath.Join(v.dir, valuesFile), filepath.Join(v.dir, identityFile)
}

// read returns all values, none if there is no file.
func (v *Vault) read() (map[string]string, error) {
	if v == nil {
		return nil, nil
	}
	path, _ := v.Files()
	f, _, err := v.trust.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, badFile(path, "cannot be read", err, "see that it is a regular file which only you may write: chmod 600 "+path)
	}
	defer f.Close()
	identity, err := v.identity()
	if err != nil {
		return nil, err
	}
	if identity == nil {
		_, key := v.Files()
		return nil, badFile(path, fmt.Sprintf("the identity %q that decrypts it is missing", key), nil, "restore the identity from a backup, or delete the file and set the secrets again")
	}
	again := "restore it from a backup, or delete it and set the secrets again with `sentinel secret set`"
	plain, err := age.Decrypt(io.LimitReader(f, maxVault), identity)
	if none := (*age.NoIdentityMatchError)(nil); errors.As(err, &none) {
		return nil, badFile(path, "it is encrypted for another identity", nil, again)
	}
	if err != nil {
		return nil, badFile(path, "it is damaged", nil, again)
	}
	text, err := io.ReadAll(plain)
	values := map[string]string{}
	if err != nil || json.Unmarshal(text, &values) != nil {
		return nil, badFile(path, "it is damaged", nil, again)
	}
	return values, nil
}

// identity returns the identity, nil if there is none.
func (v *Vault) identity() (*age.X25519Identity, error) {
	_, path := v.Files()
	f, info, err := v.trust.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, regularfile.ErrKind):
		return nil, badFile(path, "it is not a regular file", nil, "delete it, and restore the identity from a backup")
	case err != nil:
		return nil, badFile(path, "the identity cannot be read", err, "see that you own it and that only you may read it: chmod 600 "+path)
	}
	defer f.Close()
	if othersMay(info) {
		return nil, badFile(path, "others may read or change the identity", nil, "chmod 600 "+path+"; if others may have read it, delete both files and set new values")
	}
	list, err := age.ParseIdentities(io.LimitReader(f, 4<<10))
	if err == nil && len(list) == 1 {
		if identity, ok := list[0].(*age.X25519Identity); ok {
			return identity, nil
		}
	}
	return nil, badFile(path, "it has no identity", nil, "restore it from a backup: it is a line AGE-SECRET-KEY-1...")
}

// makeIdentity returns the identity, made now if there is none.
func (v *Vault) makeIdentity() (*age.X25519Identity, error) {
	if identity, err := v.identity(); identity != nil || err != nil {
		return identity, err
	}
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, err
	}
	_, path := v.Files()
	return identity, atomicfile.Replace(path, fmt.Appendf(nil, "# public key: %s\n%s\n", identity.Recipient(), identity), 0o600)
}

// Names returns the names that the vault has values of, sorted.
func (v *Vault) Names() ([]string, error) {
	values, err := v.read()
	return slices.Sorted(maps.Keys(values)), err
}

// Set stores a value under a name.
func (v *Vault) Set(ctx context.Context, name, value string) error {
	if !Named(name) {
		return badName(name)
	}
	if why, hint := invalid(value); why != "" {
		return unusable(name, why, hint)
	}
	return v.change(ctx, func(values map[string]string) error { values[name] = value; return nil })
}

// Remove deletes the value of a name. It is an error if there is none.
func (v *Vault) Remove(ctx context.Context, name string) error {
	return v.change(ctx, func(values map[string]string) error {
		if _, ok := values[name]; !ok {
			path, _ := v.Files()
			return &abi.Error{Code: abi.NotFound, Permanent: true, Message: fmt.Sprintf("secret %.70q: it is not in %s", name, path), Hint: "`sentinel secret list` shows the secrets and where their values are"}
		}
		delete(values, name)
		return nil
	})
}

func (v *Vault) change(ctx context.Context, edit func(map[string]string) error) error {
	if v == nil {
		return errNoFolder
	}
	if err := os.MkdirAll(v.dir, 0o700); err != nil {
		return fmt.Errorf("store secret: %w", err)
	}
	unlock, err := atomicfile.Lock(ctx, v.dir)
	if err != nil {
		return fmt.Errorf("store secret: %w", err)
	}
	defer unlock()
	values, err := v.read()
	if err != nil {
		return err
	}
	if err := edit(values); err != nil {
		return err
	}
	identity, err := v.makeIdentity()
	if err != nil {
		return err
	}
	plain, err := json.Marshal(values)
	if err != nil {
		return err
	}
	var file bytes.Buffer
	w, err := age.Encrypt(&file, identity.Recipient())
	if err == nil {
		_, err = w.Write(plain)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return fmt.Errorf("store secret: %w", err)
	}
	path, _ := v.Files()
	if file.Len() > maxVault {
		return &abi.Error{Code: abi.Limit, Permanent: true, Message: fmt.Sprintf("store secret: %s would have more than %d MiB", path, maxVault>>20)}
	}
	return atomicfile.Replace(path, file.Bytes(), 0o600)
}

var errNoFolder = &abi.Error{Code: abi.Unavailable, Message: "secrets: there is no folder for the user's configuration", Hint: "set HOME or XDG_CONFIG_HOME"}

// badFile is the error of a file of the vault. Its text has nothing of the content.
func badFile(path, why string, err error, hint string) *abi.Error {
	message := fmt.Sprintf("secrets %q: %s", path, why)
	if err != nil {
		message += ": " + err.Error()
	}
	return &abi.Error{Code: abi.Denied, Permanent: true, Message: message, Hint: hint}
}
