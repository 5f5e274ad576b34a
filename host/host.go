package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sentinel-runtime/sentinel/host/audit"
	"github.com/sentinel-runtime/sentinel/host/checkpoint"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/chat"
	"github.com/sentinel-runtime/sentinel/host/command/shell"
	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/host/forge"
	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/host/internal/obeyed"
	"github.com/sentinel-runtime/sentinel/host/internal/trash"
	"github.com/sentinel-runtime/sentinel/host/internal/trust"
	"github.com/sentinel-runtime/sentinel/host/internal/trust/content"
	"github.com/sentinel-runtime/sentinel/host/notify"
	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/lock"
	"github.com/sentinel-runtime/sentinel/host/plugin/egress"
	"github.com/sentinel-runtime/sentinel/host/plugin/files"
	"github.com/sentinel-runtime/sentinel/host/plugin/grant"
	"github.com/sentinel-runtime/sentinel/host/principal"
	"github.com/sentinel-runtime/sentinel/host/redact"
	"github.com/sentinel-runtime/sentinel/host/secret"
	"github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/host/ticket/learning"
	"github.com/sentinel-runtime/sentinel/host/verify"
	"github.com/sentinel-runtime/sentinel/host/worktree"
	"github.com/sentinel-runtime/sentinel/plugins"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers/standard"
)

// A Host is one process's hold on a state folder.
//
// # Concurrency
//
// All methods are safe for concurrent use. Close waits for what was started.
type Host struct {
	opt         Options
	dir         string
	state       string
	settings    *config.Loaded
	redactor    *redact.Redactor
	hashes      *redact.Hashes
	trust       *trust.Policy
	secrets     *secret.Source
	egress      *egress.Client // of requests of plugins, steps and commands
	allowed     *secret.Allowed
	models      *models
	shells      *shell.Manager
	gates       gateIndex
	senders     senders
	homes       trash.Bin // of confined commands
	ownCache    string    // compiled plugins where the user has no folder for them, "" else
	leftHomes   sync.Once
	leftOver    obeyed.Left // of confined commands
	confining   confinements
	registry    *command.Registry
	grants      *grant.Store
	rt          *runtime.Runtime
	tickets     *ticket.Service
	learner     *learning.Learner
	verify      *verify.Tickets
	worktrees   *worktree.Service
	checkpoints *checkpoint.Service
	forge       *forge.Service
	notify      *notify.Service
	logs        *runLogs
	audit       *audit.Log
	baseURL     atomic.Pointer[string]
	warned      sync.Map // names of secrets of triggers, and what was logged of them
	schema      madeSchema
}

// A madeSchema is the schema of definitions and what it was made of.
type madeSchema struct {
	mu       sync.Mutex
	commands string // version of the registry
	types    *sentinels.TypeSet
	text     json.RawMessage
}

// Open opens the state folder and everything around it. When another process
// has it, errors.Is(err, runtime.ErrHeld) holds.
func Open(ctx context.Context, opt Options) (*Host, error) {
	if opt.Getenv == nil {
		opt.Getenv = os.Getenv
	}
	if opt.Environ == nil {
		opt.Environ = os.Environ
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	workspace, err := filepath.Abs(opt.Workspace)
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	opt.Workspace = workspace
	settings := opt.Settings
	if settings == nil {
		if settings, err = config.Load(config.Options{File: opt.Config, Getenv: opt.Getenv, Flags: opt.Set}); err != nil {
			return nil, err
		}
	}
	redactor := opt.Redactor
	if redactor == nil {
		redactor = new(redact.Redactor)
	}
	opt.Logger = slog.New(redact.NewHandler(opt.Logger.Handler(), redactor))
	h := &Host{opt: opt, dir: opt.Dir, state: opt.State, settings: settings, trust: settings.Policy, redactor: redactor, hashes: redact.NewHashes()}
	h.secrets = secret.New(secret.Options{
		Places: settings.Secrets, Vault: secret.NewVault(config.Path(opt.Getenv), h.trust), Environ: opt.Environ, Getenv: opt.Getenv, Redactor: h.redactor, Trust: h.trust,
	})
	known, err := h.secrets.All()
	if err != nil {
		h.opt.Logger.Warn("secrets", "error", err)
	}
	h.secrets.Learn(slices.Sorted(maps.Keys(known))...) // a shell may write one down before a request carries it
	if err := h.redactor.Register(secret.InEnvironment(opt.Environ())...); err != nil {
		h.opt.Logger.Warn("secrets of the environment", "variables", secret.Env+"*", "reason", err)
	}
	if h.dir == "" {
		h.dir = FindDir(workspace)
	}
	if h.state == "" {
		h.state = filepath.Join(h.dir, "state")
	}
	h.allowed = secret.NewAllowed(config.Path(opt.Getenv), h.dir, settings.Policy)
	if opt.AskTrust {
		h.trust = h.trust.WithContent(Content(h.dir, workspace, settings, opt.Getenv))
	}
	h.grants = Grants(h.dir, settings, opt.Getenv, opt.Logger)
	if err := h.open(ctx); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// Grants returns what the operator allowed the plugins of a .sentinel folder.
func Grants(dir string, settings *config.Loaded, getenv func(string) string, logger *slog.Logger) *grant.Store {
	return grant.New(grant.Options{
		File: filepath.Join(dir, "plugins", "grants.json"), Key: grantKey(getenv), TrustUnsealed: settings.Plugins.TrustGrants, Logger: logger,
		Trust: settings.Policy,
	})
}

// Content returns what of the content of a .sentinel folder the user trusts. workspace is
// the project whose .continuum folder counts too.
func Content(dir, workspace string, settings *config.Loaded, getenv func(string) string) *content.Folder {
	opt := content.Options{Roots: settings.Trust.Roots, Git: gitexec.LookPath()}
	if path := config.Path(getenv); path != "" {
		opt.Records = filepath.Join(filepath.Dir(path), "trusted") // no project can put anything there
	}
	return content.Open(dir, workspace, opt)
}

// grantKey is the file with the key that seals grants, beside the user's own
// configuration: no project can put anything there.
func grantKey(getenv func(string) string) string {
	path := config.Path(getenv)
	if path == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(path), "grants.key")
}

func (h *Host) open(ctx context.Context) error {
	if err := h.checkFolders(); err != nil {
		return err
	}
	if err := makeState(h.state, h.trust); err != nil {
		return err
	}
	if err := ignoreState(h.dir, h.state); err != nil { // no reason not to start; the next start tries again
		h.opt.Logger.Warn("the state folder is not ignored by git", "error", err)
	}
	h.audit = audit.New(h.state, audit.Options{Redact: h.redact, Logger: h.opt.Logger})
	h.logs = openRunLogs(filepath.Join(h.state, "logs"), h.opt.Logger)
	if most := int64(h.settings.Logs.RunSize); most > 0 {
		h.logs.bounds.most, h.logs.bounds.head, h.logs.bounds.tail = most, most/2, most/4
	}
	var err error
	if h.models, err = h.openModels(); err != nil {
		return err
	}
	guests, err := h.plugins()
	if err != nil {
		return err
	}
	h.homes = trash.Bin{Dir: h.userDir("confined-removed"), Logger: h.opt.Logger}
	h.shells, err = shell.New(shell.Options{
		Dir: filepath.Join(h.state, "shell"), Classifiers: (*outputClassifiers)(h), Confine: h.confineShell, Printed: h.printed, Redact: h.redactor, Subreaper: h.opt.Subreaper, Logger: h.opt.Logger,
		Pass: h.settings.Shell.Env, Environ: h.opt.Environ, Definition: h.definitionVariables, Secret: h.stepSecret,
	})
	if err != nil {
		return fmt.Errorf("open shells: %w", err)
	}
	cache, err := h.cacheDir()
	if err != nil {
		return err
	}
	h.removeOldCache(ctx)
	h.egress = egress.New(egress.Options{Secrets: h.secrets, Connected: h.senders.connected})
	// Who has the store owns the processes that a crash left behind, so they
	// are ended only behind this.
	h.rt, err = runtime.Open(ctx, runtime.Options{
		Dir:             h.state,
		Version:         h.opt.Version,
		CacheDir:        cache,
		Plugins:         guests,
		Grants:          h.grants,
		CheckPermission: checkPermission,
		CheckRole:       checkRole,
		Commands:        (*commandBridge)(h),
		Checks:          h.checks(),
		Models:          h.models,
		Executions:      (*executions)(h),
		Contexts:        (*contexts)(h),
		HTTP:            outgoing{h.egress},
		Folders:         folders{files.New(files.Options{Host: h.hostFiles()}), h},
		Triggers:        append(standard.Set(), h.opt.Kinds...),
		Secret:          h.secret,
		Workspace:       h.opt.Workspace,
		Project:         h.project(),
		CheckWorkspace: func(dir string, within []string) error {
			_, err := h.baseOf(dir, within)
			return err
		},
		WorkspaceExists: func(dir string) bool { _, err := os.Stat(dir); return !errors.Is(err, fs.ErrNotExist) },
		OnInterrupt:     h.opt.OnInterrupt,
		Limits:          h.limits(),
		MinFree:         int64(h.settings.Limits.FreeSpace),
		Redact:          h.redact,
		Observer:        runtime.Observer{Progress: h.observe, Definition: h.opt.Observer.Definition, Trigger: h.opt.Observer.Trigger, Health: h.opt.Observer.Health, Plugin: h.observePlugin},
		Logger:          h.opt.Logger,
		OwnEvents:       []string{ticket.UpdateEvent, ticket.DueEvent, ticket.ProgressEvent, ticket.ActivityEvent, ticket.PullEvent, ticket.FiledEvent, chat.EventName},
		Indexes:         slices.Concat(ticket.Indexes(), learning.Indexes(), []*runtime.DocumentIndex{byUse, byOwner}),

		SnapshotEvery: snapshotEvery(h.settings.Snapshots),
		KeepSnapshots: h.settings.Snapshots.Keep,
	})
	if err != nil {
		return err
	}
	if err := h.trust.Content().CheckStore(h.state, h.rt.StoreID(), func() error { return errors.Join(h.rt.ForgetTrusted(ctx), h.pauseRuns(ctx)) }); err != nil { // before anything of it is executed
		return fmt.Errorf("open state: %w", err)
	}
	if _, err := h.shells.Recover(ctx); err != nil {
		h.opt.Logger.Warn("processes of an earlier host", "error", err)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("open state: %w", context.Cause(ctx))
	}
	h.learner = learning.New(learning.Options{Trials: h.settings.Tickets.Trials})
	h.tickets = h.openTickets()
	h.verify = h.openVerifier()
	h.worktrees = h.openWorktrees()
	h.checkpoints = h.openCheckpoints()
	if h.forge, err = h.openForge(); err != nil {
		return err
	}
	if h.notify, err = h.openNotify(); err != nil {
		return err
	}
	h.registry, err = h.openRegistry()
	return err
}

// pauseRuns pauses all runs of the store that have not ended. Of a store that came with a folder a person has seen the
// definitions, but not all that its runs would execute: variables, outputs and events have text of others too.
func (h *Host) pauseRuns(ctx context.Context) error {
	all, err := h.rt.Runs(runtime.RunFilter{Statuses: runtime.Unfinished()})
	if err != nil {
		return fmt.Errorf("pause the runs of a store that came with the folder: %w", err)
	}
	pause := func(r runtime.RunInfo, tree bool) error {
		if err := h.rt.PauseWith(ctx, r.ID, runtime.PauseOptions{By: "sentinel trust", Over: true, Tree: tree}); err != nil {
			return fmt.Errorf("pause run %s of a store that came with the folder: %w", r.ID, err)
		}
		return nil
	}
	for _, r := range all {
		if r.ID != r.Root {
			continue
		}
		if err := pause(r, true); err != nil {
			return err
		}
		h.opt.Logger.Warn("a run that came with the folder is paused", "run", r.ID, "sentinel", r.Sentinel, "next", "sentinel trace "+string(r.ID)+", then sentinel resume "+string(r.ID))
	}
	for _, r := range all { // those whose root has ended
		if err := pause(r, false); err != nil {
			return err
		}
	}
	return nil
}

// Close ends this process's part in every run, its shells, and closes the
// state folder. It is idempotent.
func (h *Host) Close() error {
	var errs []error
	if h.rt != nil {
		errs = append(errs, h.rt.Close())
	}
	if h.notify != nil {
		h.notify.Close()
	}
	if h.verify != nil {
		h.verify.Verifier.Close()
	}
	if h.worktrees != nil {
		h.worktrees.Close()
	}
	if h.shells != nil {
		errs = append(errs, h.shells.Close())
		h.homes.Close()
	}
	if h.models != nil {
		errs = append(errs, h.models.close())
	}
	if h.logs != nil {
		h.logs.close()
	}
	if h.audit != nil {
		errs = append(errs, h.audit.Close())
	}
	if h.ownCache != "" {
		errs = append(errs, os.RemoveAll(h.ownCache))
	}
	return errors.Join(errs...)
}

// Runtime returns the engine.
func (h *Host) Runtime() *runtime.Runtime { return h.rt }

// Commands returns every command there is.
func (h *Host) Commands() *command.Registry { return h.registry }

// Schema returns the JSON Schema of definitions that this host accepts.
// It is made once for each set of commands and step types, and must not be changed.
func (h *Host) Schema() json.RawMessage {
	h.schema.mu.Lock()
	defer h.schema.mu.Unlock()
	commands, types := h.registry.Version(), h.rt.Types()
	if h.schema.text != nil && h.schema.commands == commands && h.schema.types == types {
		return h.schema.text
	}
	h.schema.commands, h.schema.types, h.schema.text = commands, types, h.makeSchema(types)
	return h.schema.text
}

// makeSchema makes the schema with these step types.
func (h *Host) makeSchema(types *sentinels.TypeSet) json.RawMessage {
	outputs := map[string]json.RawMessage{}
	for _, c := range h.registry.List() {
		if c.Effect != command.Decides { // no step has its output
			outputs[c.Name] = c.Output()
		}
	}
	return sentinels.Schema(types, h.rt.DecodeOptions("").Triggers, outputs)
}

// Dir returns the .sentinel folder, State the folder of the store.
func (h *Host) Dir() string { return h.dir }

// Settings returns what the operator settled, and where.
func (h *Host) Settings() *config.Loaded { return h.settings }

// Workspace returns the folder that commands work in which no run places.
func (h *Host) Workspace() string { return h.opt.Workspace }

// Trust returns what decides which files are obeyed.
func (h *Host) Trust() *trust.Policy { return h.trust }

// Logger returns the logger of the host, which removes secrets.
func (h *Host) Logger() *slog.Logger { return h.opt.Logger }

// State returns the folder that holds the store.
func (h *Host) State() string { return h.state }

// Call calls a command as a person would. What it writes to the store is
// durable when it returns.
func (h *Host) Call(ctx context.Context, name string, params json.RawMessage) (json.RawMessage, error) {
	return h.CallAs(ctx, &command.Call{Command: name, Params: params})
}

// CallAs is Call for a caller who says more about the call; what it leaves out
// is filled in as for a person. The call itself is not changed. Results for agents and
// viewers, and errors for all, are without secrets; steps and models get theirs from the
// engine, which removes them.
func (h *Host) CallAs(ctx context.Context, call *command.Call) (json.RawMessage, error) {
	own := *call
	if len(own.Params) == 0 {
		own.Params = json.RawMessage("{}")
	}
	if own.By == "" {
		own.By = command.ByUser
	}
	if own.Workspace == "" {
		own.Workspace = h.opt.Workspace
	}
	own.Attempt = max(own.Attempt, 1)
	own.Redact = h.redactFor(&own)
	if own.By != command.ByUser {
		own.Hashes = h.hashes.Of
	}
	if own.Run == "" {
		by := principal.From(ctx).Process
		own.Sender = h.senderRun(by.PID, by.Remote)
	}
	ctx = withSender(ctx, own.Sender)
	ctx = runtime.WithEventAuthor(runtime.WithDocumentOwner(ctx, own.Share()), own.Share())
	var out json.RawMessage
	var err error
	if c, ok := h.registry.Lookup(own.Command); !ok || !c.InStore {
		out, err = h.call(ctx, &own)
	} else {
		transact := h.rt.Documents().Update
		if c.ReadOnly() {
			transact = h.rt.Documents().View
		}
		err = transact(ctx, func(tx *runtime.DocumentTx) error {
			own.Records = h.recordsOf(&own, tx)
			var err error
			out, err = h.registry.Call(ctx, &own)
			return err
		})
		h.record(ctx, &own, err)
	}
	if own.By != command.ByUser {
		out = h.hide(out)
	}
	return out, h.redactError(err)
}

// redactError returns an error without secrets, err itself if it has none.
func (h *Host) redactError(err error) error {
	if err == nil {
		return nil
	}
	original := abi.Error{Code: abi.Internal, Message: err.Error()}
	if known := abi.As(err); known != nil {
		original = *known
	}
	clean := original
	clean.Field, clean.Message, clean.Hint = h.redactor.String(original.Field), h.redactor.String(original.Message), h.redactor.String(original.Hint)
	if clean == original {
		return err
	}
	return &clean
}

// secret returns what a trigger compares a request with: a secret of that name,
// or the variable that the definition names. From there on it is kept out of
// everything that is written.
func (h *Host) secret(name string) (string, bool) {
	if secret.Named(name) {
		value, err := h.secrets.Value(name)
		if err == nil {
			return value, true
		}
		// A secret that is there and cannot be used is no reason to take another.
		if abi.CodeOf(err) != abi.NotFound || h.settings.Secrets[name] != (secret.Place{}) {
			h.warnOfSecret(name, "secret of a trigger cannot be used", err)
			return "", false
		}
	}
	value := h.opt.Getenv(name)
	if value == "" {
		return "", false
	}
	if err := h.redactor.Register(value); err != nil {
		h.warnOfSecret(name, "secret cannot be kept out of what is written", err)
	}
	return value, true
}

// warnOfSecret logs what is wrong with a secret once, and again if that changes:
// triggers ask for their secrets at each request.
func (h *Host) warnOfSecret(name, message string, reason error) {
	if before, warned := h.warned.Swap(name, reason.Error()); !warned || before != reason.Error() {
		h.opt.Logger.Warn(message, "secret", name, "reason", reason)
	}
}

// snapshotEvery returns the interval of snapshots as the engine has it: negative is
// never, and 0 its default.
func snapshotEvery(c config.Snapshots) time.Duration {
	if c.Every == 0 {
		return -1
	}
	return c.Every.Std()
}

// limits returns the engine's limits: those of the options, else those of the
// configuration, which have the same names.
func (h *Host) limits() runtime.Limits {
	limits := h.opt.Limits
	own, configured := reflect.ValueOf(&limits).Elem(), reflect.ValueOf(h.settings.Limits)
	for i := range own.NumField() {
		if f := own.Field(i); f.IsZero() {
			f.SetInt(configured.FieldByName(own.Type().Field(i).Name).Int())
		}
	}
	return limits
}

// Redact keeps further secrets out of everything that is written. One that is
// too short to be distinguished from ordinary text is an error.
func (h *Host) Redact(secrets ...string) error { return h.redactor.Register(secrets...) }

// RedactToken is Redact for a token of the API: commands that models call can read many
// files, and its file is one of them.
func (h *Host) RedactToken(token string) {
	if err := h.Redact(token); err != nil {
		h.opt.Logger.Error("the token cannot be redacted", "error", err)
	}
}

// redact takes registered secrets out of a JSON value.
func (h *Host) redact(b []byte) []byte { return h.redactor.JSON(b) }

// hide returns a JSON text without registered secrets, and without the hashes that would confirm a guess of one.
func (h *Host) hide(b []byte) []byte { return h.hashes.JSON(h.redact(b)) }

// printed reports what a command of a run prints.
func (h *Host) printed(p shell.Printed) {
	h.observe(runtime.Progress{
		Event: runtime.OnOutput, Run: p.Run, Root: p.Root, Sentinel: p.Sentinel, Time: time.Now(), Iteration: p.Iteration, Path: p.Path, Step: p.StepName, Attempt: p.Attempt,
		Label: p.ExecutionID, Offset: p.Offset, Message: p.Text,
	})
}

func (h *Host) observe(p runtime.Progress) {
	h.logs.write(p)
	h.recordOperator(p)
	if h.opt.Observer.Progress != nil {
		h.opt.Observer.Progress(p)
	}
}

// checkPermission reads a name that a plugin asks for as the code will that compares it with
// a request.
func checkPermission(use abi.Use, name string) error {
	if use == abi.UseHTTP {
		return egress.CheckHost(name)
	}
	return nil
}

// plugins returns the built-in step types, those of the folder that was named,
// and those of the project. Of two files of the same name the named one counts.
func (h *Host) plugins() ([]plugin.Source, error) {
	list := []plugin.Source{{Name: "builtin", Wasm: plugins.Builtin, Manifest: plugins.Manifest, Trusted: true}}
	var folders []string
	if h.opt.Plugins != "" {
		folders = append(folders, h.opt.Plugins)
	}
	if own := filepath.Join(h.dir, "plugins"); !h.opt.Watched && own != filepath.Clean(h.opt.Plugins) {
		folders = append(folders, own)
	}
	for _, dir := range folders {
		entries, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) && dir != h.opt.Plugins {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read plugins: %w", err)
		}
		installed := lock.Folder{Dir: dir}
		for _, e := range entries {
			there := slices.ContainsFunc(list, func(p plugin.Source) bool { return p.Name == e.Name() })
			if filepath.Ext(e.Name()) != ".wasm" || there {
				continue
			}
			path := filepath.Join(dir, e.Name())
			list = append(list, plugin.Source{Name: e.Name(), Wasm: func() ([]byte, error) {
				if strings.HasPrefix(e.Name(), ".") {
					return nil, errors.New("its name begins with a dot")
				}
				code, err := h.trust.Read(path, lock.MaxModule)
				if err == nil {
					err = installed.Check(e.Name(), lock.Digest(code))
				}
				return code, err
			}})
		}
	}
	return list, nil
}
