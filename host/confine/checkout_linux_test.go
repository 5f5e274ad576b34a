package confine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/confine"
)

// TestReplacedCheckout: a command whose checkout was replaced after the host has looked at it is not
// executed, and neither is one whose checkout is in what is kept from commands.
func TestReplacedCheckout(t *testing.T) {
	needNamespaces(t)
	target := t.TempDir()
	if err := os.WriteFile(filepath.Join(target, "key"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(c *confine.Command) error
		works  bool
	}{
		"unchanged": {func(*confine.Command) error { return nil }, true},
		"another folder": {func(c *confine.Command) error {
			if err := os.Rename(c.Root, c.Root+".old"); err != nil {
				return err
			}
			return os.Mkdir(c.Root, 0o700)
		}, false},
		"link": {func(c *confine.Command) error {
			if err := os.Rename(c.Root, c.Root+".old"); err != nil {
				return err
			}
			return os.Symlink(target, c.Root)
		}, false},
		"link to the same folder": {func(c *confine.Command) error {
			if err := os.Rename(c.Root, c.Root+".old"); err != nil {
				return err
			}
			return os.Symlink(c.Root+".old", c.Root)
		}, false},
		"kept from commands": {func(c *confine.Command) error {
			c.Outside = []string{c.Root}
			return nil
		}, false},
		"in what is kept from commands": {func(c *confine.Command) error {
			c.Outside = []string{filepath.Dir(c.Root)}
			return nil
		}, false},
	} {
		for _, namespaces := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, namespaces %v", name, namespaces), func(t *testing.T) {
				confine.Lower(t, namespaces, 99)
				command := command(t, "cat key; echo made > file; echo executed")
				info, err := os.Lstat(command.Root)
				if err != nil {
					t.Fatal(err)
				}
				command.Folder = info
				if err := c.change(&command); err != nil {
					t.Fatal(err)
				}
				result, err := runner(t).Run(t.Context(), command)
				if out := string(result.Output); (err == nil) != c.works || strings.Contains(out, "secret") || strings.Contains(out, "executed") != c.works {
					t.Errorf("%s %v", out, err)
				}
				if _, err := os.Stat(filepath.Join(target, "file")); err == nil {
					t.Error("written elsewhere")
				}
			})
		}
	}
}
