package grant

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/atomicfile"
	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// keyBytes is the length of a key, which its file holds in hex.
const keyBytes = 32

// readKey returns the user's key, nil if there is none yet. A key that others
// may read or change is worth nothing: they could seal for this user.
func readKey(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	f, info, err := regularfile.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if errors.Is(err, regularfile.ErrKind) {
		return nil, badKey(path, err.Error(), "delete it; the next `sentinel plugin allow` makes a new one")
	}
	if err != nil {
		return nil, badKey(path, err.Error(), "see that you may read the file")
	}
	defer f.Close()
	if othersMay(info) {
		return nil, badKey(path, "others may read or change it", "chmod 600 "+path+", or delete it and allow your plugins again")
	}
	text, err := io.ReadAll(io.LimitReader(f, 4*keyBytes))
	if err != nil {
		return nil, badKey(path, err.Error(), "")
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != keyBytes {
		return nil, badKey(path, "it holds no key", "delete it and allow your plugins again")
	}
	return key, nil
}

func badKey(path, why, hint string) error {
	return &abi.Error{Code: abi.Denied, Message: fmt.Sprintf("key of the grants %q: %s", path, why), Hint: hint}
}

// makeKey returns the user's key, made now if there is none. Of two processes
// that make one at the same time both get the one that is there afterwards.
func makeKey(path string) ([]byte, error) {
	if path == "" {
		return nil, &abi.Error{Code: abi.Unavailable, Message: "write grants: no folder for the key that seals them",
			Hint: "set HOME or XDG_CONFIG_HOME; a container with an image of yours can count unsealed grants: SENTINEL_PLUGINS_TRUST_GRANTS=true"}
	}
	if key, err := readKey(path); key != nil || err != nil {
		return key, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make key of the grants: %w", err)
	}
	var key [keyBytes]byte
	rand.Read(key[:]) // never fails
	temp, err := atomicfile.Temp(path, []byte(hex.EncodeToString(key[:])+"\n"), 0o600)
	if err != nil {
		return nil, fmt.Errorf("make key of the grants: %w", err)
	}
	// A link is refused where there is a file by now, which a rename would replace.
	err = os.Link(temp, path)
	err = errors.Join(ignore(err, fs.ErrExist), os.Remove(temp), atomicfile.SyncDir(filepath.Dir(path)))
	if err != nil {
		return nil, fmt.Errorf("make key of the grants: %w", err)
	}
	made, err := readKey(path)
	if err == nil && made == nil {
		err = badKey(path, "it went away while it was made", "try again")
	}
	return made, err
}

// ignore drops an error of one kind.
func ignore(err, kind error) error {
	if errors.Is(err, kind) {
		return nil
	}
	return err
}
