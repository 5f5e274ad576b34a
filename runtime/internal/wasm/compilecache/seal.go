package compilecache

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// seal lists the files of a module's compiled code with their checksums. A child
// that compiled the module has a seal; code without one was compiled in this
// process for a trusted load, or is damaged.
type seal map[string]fileSum

type fileSum struct {
	Size int64  `json:"size"`
	CRC  uint32 `json:"crc"` // Castagnoli; detects damage, not an attacker
}

// SealName returns the name of the seal in the module's folder. It depends on the
// rewritten code and on wazero's key, so that it differs between releases.
func (c *Cache) SealName(code []byte) (string, error) {
	key, err := c.EngineKey()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\nguarded\n%d\n", key, len(code)) // "guarded": compiled with the listeners, like wazero's own key
	sum.Write(code)
	return "sealed-" + hex.EncodeToString(sum.Sum(nil)[:16]) + ".json", nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumFile returns the checksum of a file.
func sumFile(path string) (fileSum, error) {
	b, err := regularfile.Read(path, regularfile.Unlimited)
	return fileSum{Size: int64(len(b)), CRC: crc32.Checksum(b, castagnoli)}, err
}

// Verify reports whether the cache has the code of a seal, undamaged. damage is the
// fault of code that it has found damaged and deleted.
func (c *Cache) Verify(digest, name string) (ok bool, damage error) {
	dir := c.Dir(digest)
	text, err := regularfile.Read(filepath.Join(dir, name), regularfile.Unlimited)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	var files seal
	if err == nil {
		err = json.Unmarshal(text, &files)
	}
	if err == nil && len(files) == 0 {
		err = errors.New("the seal lists no file")
	}
	for file, want := range files {
		if !filepath.IsLocal(file) {
			err = fmt.Errorf("the seal lists %q, outside of its folder", file)
			break
		}
		got, readErr := sumFile(filepath.Join(dir, file))
		if err = readErr; err == nil && got != want {
			err = fmt.Errorf("%s has changed", file)
		}
		if err != nil {
			break
		}
	}
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = errors.New("a file is missing")
		}
		// wazero would use the readable part of a damaged file.
		return false, errors.Join(err, os.RemoveAll(dir))
	}
	c.Touch(digest)
	return true, nil
}

// Install moves code from a temporary folder into the module's folder and seals it.
func (c *Cache) Install(from, digest, name string) error {
	files, err := codeFiles(from)
	if err == nil && len(files) == 0 {
		err = errors.New("the compile wrote no code")
	}
	dir, sums := c.Dir(digest), seal{}
	for _, file := range files {
		if err != nil {
			break
		}
		if sums[file], err = sumFile(filepath.Join(from, file)); err != nil {
			break
		}
		if err = os.MkdirAll(filepath.Join(dir, filepath.Dir(file)), 0o700); err == nil {
			err = os.Rename(filepath.Join(from, file), filepath.Join(dir, file))
		}
	}
	if err == nil {
		err = writeSeal(from, filepath.Join(dir, name), sums)
	}
	if err != nil {
		return abi.New(abi.Unavailable, "write compile cache: "+err.Error())
	}
	return nil
}

// writeSeal writes a seal atomically, by a rename from temp, a folder of the same
// file system.
func writeSeal(temp, path string, s seal) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	part := filepath.Join(temp, "seal")
	if err := regularfile.WriteFile(part, text, 0o600); err != nil {
		return err
	}
	return os.Rename(part, path)
}
