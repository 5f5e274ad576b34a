package operations

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/client"
	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/host/internal/atomicfile"
	"github.com/sentinel-runtime/sentinel/host/ops/backup"
	"github.com/sentinel-runtime/sentinel/host/secret"
	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// backupCommand writes a backup, also while a server executes runs.
func (a verbs) backupCommand() *cobra.Command {
	var secrets bool
	c := &cobra.Command{
		Use: "backup FILE", Short: "Write a consistent copy of the state to one file",
		Long: "The copy has the store, large values, outputs, logs, definitions, plugins with what they\n" +
			"may do, and the configuration. A server executes its runs meanwhile. FILE is replaced once\n" +
			"the copy is complete and checked. host/BACKUP.md says what is not in it.",
		Example: "  sentinel backup state.tar.gz\n  sentinel backup --secrets state.tar.gz   # with secrets, encrypted; their key is never in it",
		Args:    app.ExactArgs("FILE"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			s, err := a.Connect(cmd.Context(), true)
			if err != nil {
				return err
			}
			defer a.CloseSession(s, &err)
			_, missing := os.Stat(filepath.Join(a.State(), "store.db"))
			if s.Process != nil && errors.Is(missing, os.ErrNotExist) {
				return app.NotFound("", "there is no store in %s", a.State())
			}
			file := a.Path(args[0])
			info, size, err := writeBackup(cmd.Context(), file, func(w io.Writer) error {
				if s.Process != nil {
					return s.Process.Host().Backup(cmd.Context(), w, secrets, func() {})
				}
				c, ok := s.Engine.(*client.Client)
				if !ok {
					return errors.New("this engine makes no backups")
				}
				from, err := c.Backup(cmd.Context(), secrets)
				if err != nil {
					return err
				}
				_, err = io.Copy(w, from)
				return errors.Join(err, from.Close())
			})
			if err != nil {
				return err
			}
			if a.Flags.Output != output.FormatTable {
				return a.WriteJSON(map[string]any{"file": file, "bytes": size, "info": info})
			}
			a.Info("%s  %s bytes, complete and checked", a.Relative(file), output.Grouped(size))
			return nil
		},
	}
	c.Flags().BoolVar(&secrets, "secrets", false, "also copy the encrypted file of secrets")
	return c
}

// writeBackup replaces a file with a backup, which is checked before.
func writeBackup(ctx context.Context, file string, write func(io.Writer) error) (info backup.Info, size int64, err error) {
	err = atomicfile.Write(file, 0o600, func(f *os.File) (err error) {
		if err := write(f); err != nil {
			return err
		}
		if size, err = f.Seek(0, io.SeekCurrent); err != nil {
			return err
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		info, err = backup.Verify(ctx, f)
		return err
	})
	if runtime.IsDiskFull(err) {
		hint := "free space on the disk of FILE, or name a file on another one; a FILE of before is as it was"
		err = &abi.Error{Code: abi.Unavailable, Message: err.Error(), Hint: hint}
	}
	if err != nil {
		return info, 0, fmt.Errorf("write backup: %w", err)
	}
	return info, size, nil
}

// restoreCommand restores a backup. It opens no store and reaches no server.
func (a verbs) restoreCommand() *cobra.Command {
	return &cobra.Command{
		Use: "restore FILE [DIR]", Short: "Restore a backup into an empty folder",
		Long: "DIR is the folder of a project (default: the current one) whose .sentinel folder does not\n" +
			"exist or is empty. The backup is checked completely before anything appears there. The\n" +
			"configuration and secrets in it are kept beside the state: copy them where they count.",
		Example: "  sentinel restore state.tar.gz\n  sentinel restore state.tar.gz ~/project && cd ~/project && sentinel trust --with-store",
		Args:    app.RangeArgs(1, 2, "FILE", "DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			to := backup.Target{Project: a.Workspace()}
			if len(args) > 1 {
				to.Project = a.Path(args[1])
			}
			if to.Dir = to.Project; filepath.Base(to.Dir) == host.DirName {
				to.Project = filepath.Dir(to.Dir)
			} else {
				to.Dir = filepath.Join(to.Dir, host.DirName)
			}
			f, _, err := regularfile.Open(a.Path(args[0]))
			if err != nil {
				if errors.Is(err, os.ErrNotExist) {
					return app.NotFound("", "no file %q", args[0])
				}
				return err
			}
			defer f.Close()
			settings, err := a.Settings()
			if err != nil {
				return err
			}
			to.MinFree = int64(settings.Limits.FreeSpace)
			// What was trusted in a folder of this name says nothing about what comes from a file.
			to.Placing = func() error {
				if _, err := host.Content(to.Dir, to.Project, settings, a.Env.Getenv).Revoke(); err != nil {
					return err
				}
				if err := a.forgetCalls(cmd.Context(), to.Project, ""); err != nil {
					return err
				}
				had, err := secret.NewAllowed(config.Path(a.Env.Getenv), to.Dir, settings.Policy).Revoke(cmd.Context())
				if had && err == nil {
					a.Info("the sentinels of %s may use no secrets any more: allow them again with `sentinel secret allow`", a.Relative(to.Dir))
				}
				return err
			}
			done, err := backup.Restore(cmd.Context(), f, to)
			if err != nil {
				return err
			}
			if a.Flags.Output != output.FormatTable {
				return a.WriteJSON(done)
			}
			a.Info("restored the backup of %s from %s into %s", done.Project, output.LocalTime(done.Taken), a.Relative(done.Dir))
			for _, file := range done.Beside {
				a.Info("%s was not put in place: it is %s", filepath.Base(file), a.Relative(file))
			}
			a.Hint("sentinel trust --with-store shows what was restored and asks whether it counts; sentinel doctor checks it")
			return nil
		},
	}
}
