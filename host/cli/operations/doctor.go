package operations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/client"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/host/confine"
	"github.com/sentinel-runtime/sentinel/host/control"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/host/llm"
	"github.com/sentinel-runtime/sentinel/host/ops/doctor"
	"github.com/sentinel-runtime/sentinel/host/plugin/grant"
	"github.com/sentinel-runtime/sentinel/host/redact"
	"github.com/sentinel-runtime/sentinel/host/secret"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// doctorCommand examines what a host depends on. It opens no store, so it works
// where other verbs do not: beside a server, and on a damaged store.
func (a verbs) doctorCommand() *cobra.Command {
	var only []string
	var models bool
	c := &cobra.Command{
		Use: "doctor [DIR]", Short: "Check what a host depends on, and show how to repair it",
		Long: "Looks at the state folder, the store, the machine, the programs that steps use, the\n" +
			"configuration, the models and, if one runs, the server. It changes nothing. The exit code\n" +
			"is 1 if something has to be mended; a warning is not.\n\n" +
			"--models also sends three small requests to each configured model and shows whether it answers,\n" +
			"calls tools and keeps to a schema, what was counted, its price and its window. That costs money.",
		Example: "  sentinel doctor\n  sentinel doctor --models\n  sentinel doctor --only server   # is it well? for health checks of containers",
		Args:    app.RangeArgs(0, 1, "DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			// The same folder that serve would be given.
			if len(args) > 0 {
				a.ServedDir = app.ProjectDir(a.Path(args[0]))
			}
			opt := a.examine(cmd.Context(), only)
			if models {
				m, err := a.configuredModels()
				if err != nil {
					return err
				}
				defer m.Close()
				opt.Models, opt.Limit = modelProbes(m), 3*time.Minute // models think
			}
			checks := doctor.Run(cmd.Context(), opt)
			// A health check with a misspelt name must not pass, also beside others.
			unknown := slices.DeleteFunc(only, func(name string) bool {
				return slices.ContainsFunc(checks, func(c doctor.Check) bool { return c.Name == name })
			})
			if len(unknown) > 0 {
				return app.NewUsageError("doctor: unknown check "+strings.Join(unknown, ", "), "sentinel doctor shows them all")
			}
			return a.showChecks(checks)
		},
	}
	c.Flags().StringSliceVar(&only, "only", nil, "make only this check; repeatable")
	c.Flags().BoolVar(&models, "models", false, "send small requests to each configured model; costs money")
	return c
}

// configuredModels opens the models of the configuration.
func (a verbs) configuredModels() (*llm.Models, error) {
	l, err := a.Settings()
	if err != nil {
		return nil, err
	}
	return a.models(l)
}

// modelProbes returns a probe of each configured model.
func modelProbes(m *llm.Models) (probes []doctor.ModelProbe) {
	for _, ref := range m.References() {
		probes = append(probes, doctor.ModelProbe{Model: ref, Probe: func(ctx context.Context) (string, error) {
			x := m.Examine(ctx, ref)
			switch {
			case !x.Text:
				return "", x.Err
			case !x.Tools || !x.Schema || x.Err != nil:
				e := &abi.Error{Code: abi.Unavailable, Message: x.Provider + "/" + x.Model + ": " + x.String(), Hint: "use it for steps without what it lacks"}
				if x.Err != nil {
					e.Message += "; " + x.Err.Error()
				}
				return "", doctor.Minor(e)
			}
			return x.Provider + "/" + x.Model + ": " + x.String(), nil
		}})
	}
	return probes
}

// examine returns the options of the checks.
func (a verbs) examine(ctx context.Context, only []string) doctor.Options {
	opt := doctor.Options{
		State: a.State(), Plugins: a.Path(a.Flags.Plugins), Cache: a.CacheDir(), Only: only, Obeyed: a.obeyed(),
		Config: a.probeConfig, Model: a.probeModel, Secrets: a.probeSecrets, Environment: a.probeEnvironment, Confinement: a.probeConfinement,
		Notifications: a.probeNotifications, Definitions: a.probeDefinitions,
	}
	if policy, err := a.Policy(); err == nil { // else the check of the configuration reports it
		opt.Trust = policy
	}
	// Every verb loads these by default.
	if own := filepath.Join(a.Dir(), "plugins"); opt.Plugins == "" && app.IsDir(own) {
		opt.Plugins = own
	}
	// Without a server its check is skipped, unless the user asks for it.
	_, err := control.Owner(ctx, a.State())
	if err == nil || len(only) > 0 || a.Env.Getenv(client.EnvURL) != "" {
		opt.Server = a.probeServer
	}
	return opt
}

// obeyed are the files and folders that a host obeys, beside its state and plugins.
func (a verbs) obeyed() []string {
	list := []string{config.Path(a.Env.Getenv), a.Dir(), filepath.Join(a.Dir(), "recipes")}
	for _, dir := range a.Folders() {
		list = append(append(list, dir), a.DefinitionFiles(dir)...)
	}
	if settled, err := a.Settings(); err == nil { // else the check of the configuration reports it
		for _, place := range settled.Secrets {
			list = append(list, place.File)
		}
	}
	return slices.DeleteFunc(list, func(path string) bool { // missing files are not read
		_, err := os.Stat(path)
		return err != nil
	})
}

// probeDefinitions reports files of definitions with the same id, of which one counts.
func (a verbs) probeDefinitions(context.Context) (string, error) {
	if list := a.Duplicates(); len(list) > 0 {
		return "", list
	}
	return "each file of definitions has an id of its own", nil
}

// usualTools are programs that checks often execute.
var usualTools = []string{"go", "node", "npm", "npx", "pnpm", "yarn", "bun", "deno", "python3", "pytest", "uv", "poetry", "cargo", "rustc", "java", "mvn", "gradle", "ruby", "bundle", "php", "composer", "dotnet", "make", "cmake", "just"}

// fewProcesses are less than builds and tests on several processors have at times.
const fewProcesses = 256

// probeConfinement reports what commands of acceptance criteria cannot be kept from, and tools
// below the home that they do not find.
func (a verbs) probeConfinement(context.Context) (string, error) {
	var missing []string
	for _, gap := range confine.Gaps() {
		missing = append(missing, gap.String())
	}
	var read []string
	if settings, err := config.Load(a.ConfigOptions(nil, nil)); err == nil { // else the check of the configuration says it
		read = settings.Verify.Read
	}
	for _, tool := range usualTools {
		path, err := exec.LookPath(tool)
		if err != nil {
			continue
		}
		if folder := confine.Unreadable(path, read); folder != "" {
			missing = append(missing, fmt.Sprintf("commands of checks do not find %s: it is below %s, which is not in the setting verify.read", tool, folder))
		}
	}
	if n, by := confine.ProcessLimit(); n < fewProcesses {
		missing = append(missing, fmt.Sprintf("a command may have %d processes and threads, too few for many builds and tests, and further ones at the same time fewer: %s", n, by))
	}
	if len(missing) > 0 {
		return "", doctor.Minor(errors.New(strings.Join(missing, "; ")))
	}
	return "commands of acceptance criteria are confined by " + strings.Join(confine.Walls(), ", "), nil
}

// probeNotifications reports targets that nothing sends to. It reads files alone: a
// definition that is only in the store is not seen.
func (a verbs) probeNotifications(context.Context) (string, error) {
	l, err := a.Settings()
	if err != nil {
		return "", doctor.Minor(errors.New("the configuration has to be mended first"))
	}
	var targets []string
	for _, t := range [][2]string{{"notify.webhook", l.Notify.Webhook}, {"notify.email", l.Notify.Email.Server}, {"notify.command", l.Notify.Command}} {
		if t[1] != "" {
			targets = append(targets, t[0])
		}
	}
	to := strings.Join(targets, ", ")
	if to == "" {
		return "none of notify.webhook, notify.email and notify.command is set: what waits for a person is in sentinel inbox alone", nil
	}
	for _, dir := range a.Folders() {
		for _, file := range a.DefinitionFiles(dir) {
			if src, err := a.ReadSource(file); err == nil && strings.Contains(string(src.Text), `"notify/send"`) {
				return a.Relative(file) + " sends to " + to, nil
			}
		}
	}
	return "", doctor.Minor(&abi.Error{Code: abi.NotFound, Message: to + ": set, and no definition in " + strings.Join(a.Folders(), " or ") + " calls notify/send", Hint: "sentinel init --template notify"})
}

// probeConfig reads the configuration as every verb does, so it finds what would
// stop them.
func (a verbs) probeConfig(context.Context) (string, error) {
	l, err := config.Load(a.ConfigOptions(nil, nil)) // with unknown settings
	if err != nil {
		return "", err
	}
	return inOrder(l), nil
}

// inOrder describes a configuration without problems. Having no file is not one: most
// hosts have none.
func inOrder(l *config.Loaded) string {
	if _, err := os.Stat(l.File); errors.Is(err, os.ErrNotExist) {
		return "there is no file, so defaults hold"
	}
	return l.File + " is in order"
}

// models opens the models of the settings as a host would. That reads settings and
// variables, no more.
func (a verbs) models(l *config.Loaded) (*llm.Models, error) {
	return llm.Open(llm.Config{
		Default: l.Models.Default, Auto: l.Models.Auto, Capacity: l.Models.Capacity, Providers: l.Models.Providers, Models: l.Models.Known, Servers: l.Models.Servers,
		Env:      a.Env.Getenv,
		Validate: func(schema, value json.RawMessage) error { return command.ValidateJSON(schema, value) },
	})
}

// probeModel looks for a model as a host would, but asks no server: that would
// send a key somewhere, and take as long as it likes.
func (a verbs) probeModel(context.Context) (string, error) {
	l, err := a.Settings()
	if err != nil {
		// The check of the configuration reports it.
		return "", doctor.Minor(errors.New("the configuration has to be mended first"))
	}
	m, err := a.models(l)
	if err != nil {
		return "", err
	}
	defer m.Close()
	named, _, isNamed := strings.Cut(l.Models.Default, "/")
	var ready, needs []string
	for _, p := range m.Providers() {
		switch {
		case p.Ready:
			ready = append(ready, p.Name)
		// Of several providers the one that was chosen is the one to mend.
		case isNamed && p.Name == named:
			return "", &abi.Error{Code: abi.Unavailable, Message: fmt.Sprintf("the model %s is configured, and its provider is not ready", l.Models.Default),
				Hint: "set " + p.Needs}
		case p.Needs != "":
			needs = append(needs, p.Needs)
		}
	}
	// Many sentinels need none: builds, checks, schedules.
	if len(ready) == 0 {
		return "", doctor.Minor(&abi.Error{Code: abi.NotFound, Message: "no model is configured, so steps that need one fail; all others work",
			Hint: "set one of: " + strings.Join(needs, "; ")})
	}
	return "ready: " + strings.Join(ready, ", "), nil
}

// probeSecrets looks for the value of every secret that the configuration has or
// a plugin was granted. It prints names only.
func (a verbs) probeSecrets(context.Context) (string, error) {
	l, err := a.Settings()
	if err != nil {
		return "", doctor.Minor(errors.New("the configuration has to be mended first"))
	}
	vault := secret.NewVault(config.Path(a.Env.Getenv), l.Policy)
	source := secret.New(secret.Options{Places: l.Secrets, Vault: vault, Getenv: a.Env.Getenv, Redactor: new(redact.Redactor)})
	if _, err := vault.Names(); err != nil {
		return "", doctor.Minor(err)
	}
	granted, err := a.grantedSecrets(l)
	if err != nil {
		return "", doctor.Minor(err)
	}
	for _, name := range []string{l.Notify.Secret, l.Notify.Email.Password} {
		if name != "" {
			granted = append(granted, name)
		}
	}
	names := slices.Compact(slices.Sorted(slices.Values(append(source.Configured(), granted...))))
	if len(names) == 0 {
		return "none is configured, and no plugin was granted one", nil
	}
	var bad, hints []string
	for _, name := range names {
		if _, err := source.Value(name); err != nil {
			bad = append(bad, err.Error())
			if e := abi.As(err); e != nil && !slices.Contains(hints, e.Hint) {
				hints = append(hints, e.Hint)
			}
		}
	}
	if len(bad) > 0 {
		// Only what carries one of them fails.
		return "", doctor.Minor(&abi.Error{Code: abi.NotFound, Message: strings.Join(bad, "; "), Hint: strings.Join(hints, "; ")})
	}
	return strings.Join(names, ", ") + " can be used", nil
}

// probeEnvironment reports whether steps could read this process's environment.
func (a verbs) probeEnvironment(context.Context) (string, error) {
	if a.Env.Exposed != nil {
		return "", doctor.Minor(fmt.Errorf("other processes of this user can read the variables of the host: %w", a.Env.Exposed))
	}
	return "other processes cannot read the variables of the host", nil
}

// grantedSecrets returns the names of the secrets that plugins of this project may
// send.
func (a verbs) grantedSecrets(l *config.Loaded) ([]string, error) {
	grants := host.Grants(a.Dir(), l, a.Env.Getenv, slog.New(slog.DiscardHandler))
	plugins, err := grants.Names()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, plugin := range plugins {
		entry, seal, err := grants.Entry(plugin)
		if err != nil {
			return nil, err
		}
		// What does not count carries nothing, and plugin list says so.
		if (seal == grant.Good || l.Plugins.TrustGrants) && !entry.Denied {
			names = slices.AppendSeq(names, maps.Keys(entry.Grant.Secrets))
		}
	}
	return names, nil
}

// probeServer asks the server how it is.
func (a verbs) probeServer(ctx context.Context) (string, error) {
	c, named, err := client.FromEnv(a.Env.Getenv)
	if err != nil {
		return "", err
	}
	// In the order in which all verbs look for one: the environment, unless a
	// store is named, then the socket.
	if named && a.Flags.State == "" {
		defer c.Close()
		word, err := c.Health(ctx)
		return fmt.Sprintf("the server at %s is %s", c.URL(), word), err
	}
	// The socket works also without a port.
	info, err := control.Owner(ctx, a.State())
	if err != nil && !errors.Is(err, control.ErrNoOwner) {
		return "", err // one answers, and refuses
	}
	if err != nil {
		return "", &abi.Error{Code: abi.Unavailable, Message: "no server answers for " + a.State(), Hint: "start one with sentinel serve"}
	}
	// A run in the foreground, which ends by itself.
	if !info.Serves {
		return fmt.Sprintf("process %d has the store and is no server", info.PID), nil
	}
	local := client.Local(a.State())
	defer local.Close()
	word, err := local.Health(ctx)
	return fmt.Sprintf("process %d serves since %s and is %s", info.PID, output.Ago(a.Env.Now(), info.Started), word), err
}

// showChecks writes what was found. What is to be done stands below the finding
// that it mends.
func (a verbs) showChecks(checks []doctor.Check) error {
	worst := doctor.Worst(checks)
	if a.Flags.Output != output.FormatTable {
		if err := a.WriteJSON(map[string]any{"status": worst, "checks": checks}); err != nil {
			return err
		}
	} else {
		// Names have blanks, so columns are set here and not by tabs.
		width := 0
		for _, c := range checks {
			width = max(width, len(c.Name))
		}
		for _, c := range checks {
			paint := map[doctor.Status]func(termtext.Text) termtext.Text{doctor.OK: a.PaintOut.Good, doctor.Warn: a.PaintOut.Warn, doctor.Fail: a.PaintOut.Bad}[c.Status]
			err := a.Out.Printf("%s  %-*s  %s\n", paint(termtext.Sprintf("%-4s", c.Status)), width, c.Name, app.Block(c.Detail))
			if err == nil && c.Fix != "" {
				err = a.Out.Printf("      %-*s  %s %s\n", width, "", a.PaintOut.Dim("mend:"), app.Block(c.Fix))
			}
			if err != nil {
				return err
			}
		}
	}
	// Everything has been reported; with warnings alone the exit code is 0.
	if worst == doctor.Fail {
		return app.ExitError(app.ExitFailed)
	}
	return nil
}
