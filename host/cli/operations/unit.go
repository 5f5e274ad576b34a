package operations

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/host/ops/packaging"
)

// unitCommand writes the file that has systemd keep a server running. It only
// writes: where it goes, and as whom, is for the administrator of the machine.
func (a verbs) unitCommand() *cobra.Command {
	var own bool
	var account, listen string
	c := &cobra.Command{
		Use: "unit [DIR]", Short: "Write a systemd unit for `sentinel serve DIR`",
		Example: "  sentinel unit --as ci /srv/ci | sudo tee /etc/systemd/system/sentinel.service\n" +
			"  sentinel unit --user > ~/.config/systemd/user/sentinel.service && systemctl --user enable --now sentinel",
		Args: app.RangeArgs(0, 1, "DIR"),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				a.ServedDir = app.ProjectDir(a.Path(args[0]))
			}
			// A user's manager starts nothing as another user.
			if own && account != "" {
				return app.NewUsageError("unit: --user is the unit of who is logged in, --as names another account", "give one of them")
			}
			u, err := a.unit(own, account)
			if err != nil {
				return err
			}
			// All other settings are read by the server, where it runs; the address is
			// what differs between two of them on one machine.
			if listen != "" {
				u.Args = append(u.Args, "--listen", listen)
			}
			text, err := u.Text()
			if err == nil {
				err = a.Out.Write(termtext.Block(text, "") + "\n")
			}
			return err
		},
	}
	c.Flags().BoolVar(&own, "user", false, "for your own manager, systemctl --user")
	c.Flags().StringVar(&account, "as", "", "account that the process runs as (default: whose the project is)")
	c.Flags().StringVar(&listen, "listen", "", "address of the API, if not the configured one")
	return c
}

// unit gathers what this invocation knows of the service.
func (a verbs) unit(own bool, account string) (packaging.Unit, error) {
	// Only for the drain, which the manager's patience has to exceed: the server
	// reads the configuration itself.
	settled, err := a.Settings()
	if err != nil {
		return packaging.Unit{}, err
	}
	// Links are kept as they are: a package may put the next release behind one.
	file, err := os.Executable()
	if err != nil {
		return packaging.Unit{}, fmt.Errorf("find this program: %w", err)
	}
	// What `go run` makes.
	if strings.Contains(filepath.ToSlash(file), "/go-build") {
		return packaging.Unit{}, app.NewUsageError(fmt.Sprintf("unit: this program is %s, a temporary file", file), "install it first, and run it from there")
	}
	if !own && account == "" {
		if account, err = ownerOf(a.Workspace()); err != nil {
			return packaging.Unit{}, err
		}
	}
	u := packaging.Unit{
		Program: file, Dir: a.Dir(), Workspace: a.Workspace(), State: a.State(), Account: account, User: own,
		Drain: settled.Serve.Drain.Std(),
	}
	if of, err := user.Lookup(account); err == nil && of.HomeDir != "" {
		u.Records = filepath.Join(of.HomeDir, ".config", "sentinel", "trusted")
	}
	if a.Flags.Plugins != "" {
		u.Args = append(u.Args, "--plugins", a.Path(a.Flags.Plugins))
	}
	for _, p := range a.Flags.Trust {
		u.Args = append(u.Args, "--trust", a.Path(p))
	}
	return u, nil
}

// ownerOf returns the account that a folder belongs to. Steps run shell lines
// that models may have written, so the administrator's own account is none that
// is taken without being named.
func ownerOf(dir string) (string, error) {
	id, err := ownerID(dir)
	if err != nil {
		return "", app.NewUsageError(fmt.Sprintf("unit: whose %s is cannot be found out: %v", dir, err), "name the account with --as")
	}
	// With --as root it can be had all the same.
	if id == "0" {
		return "", app.NewUsageError(fmt.Sprintf("unit: %s is root's, and steps should not run as root", dir), "give the project to an account of its own and name that with --as")
	}
	u, err := user.LookupId(id)
	if err != nil {
		return "", app.NewUsageError(fmt.Sprintf("unit: %s belongs to user %s, which is unknown: %v", dir, id, err), "name the account with --as")
	}
	return u.Username, nil
}
