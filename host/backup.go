package host

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"time"

	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/host/internal/httpproblem"
	"github.com/sentinel-runtime/sentinel/host/ops/backup"
	"github.com/sentinel-runtime/sentinel/host/principal"
	"github.com/sentinel-runtime/sentinel/host/secret"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Backup writes an archive of the state while runs execute, see package backup. With
// secrets it has the encrypted secrets of the user. begin is called before the first
// byte; errors before that change nothing at the receiver. It needs free space for a copy
// of the store.
func (h *Host) Backup(ctx context.Context, to io.Writer, secrets bool, begin func()) error {
	return h.rt.Backup(ctx, func(s runtime.Snapshot) error {
		begin()
		src := backup.Sources{
			Info: backup.Info{Version: h.opt.Version, StoreFormat: runtime.StoreFormat, Taken: time.Now().UTC(), Project: filepath.Dir(h.dir), Secrets: secrets},
			Dir:  h.dir, State: h.state, Store: s.Path, Project: h.opt.Workspace, Config: h.settings.File,
		}
		if vault := secret.NewVault(config.Path(h.opt.Getenv), h.settings.Policy); secrets && vault != nil {
			src.Secrets, _ = vault.Files()
		}
		return backup.Write(ctx, to, src)
	})
}

// BackupHandler returns the handler of GET /v1/backup, which is for people.
func (h *Host) BackupHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := principal.From(r.Context()); p.Kind != "" && p.Kind != principal.Person {
			httpproblem.Write(w, &abi.Error{Code: abi.Denied, Permanent: true, Message: "a backup has the data of all runs: only a person makes one"})
			return
		}
		begun := false
		err := h.Backup(r.Context(), w, r.URL.Query().Get("secrets") == "true", func() {
			begun = true
			_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // an archive takes as long as its size
			w.Header().Set("Content-Type", "application/gzip")
		})
		switch {
		case err == nil:
		case !begun:
			httpproblem.Write(w, h.redactError(err))
		default:
			if !errors.Is(err, context.Canceled) {
				h.opt.Logger.Warn("the backup ended early", "error", err)
			}
			panic(http.ErrAbortHandler) // the client sees that the archive is not complete
		}
	})
}
