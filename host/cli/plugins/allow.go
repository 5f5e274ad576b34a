package plugins

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	hostplugin "github.com/sentinel-runtime/sentinel/host/plugin"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
)

// allowFlags are the flags of plugin allow.
type allowFlags struct {
	only, deny, secrets, folders        []string
	digest                              string
	memory                              int64
	timeout                             time.Duration
	reuse, private, pin, follow, yes, n bool
}

// allowed is what plugin/allow and plugin/deny answer.
type allowed struct {
	Plugin      hostplugin.Listed   `json:"plugin"`
	Digest      string              `json:"digest"`
	Permissions []plugin.Permission `json:"permissions,omitempty"`
	Grant       *plugin.Grant       `json:"grant,omitempty"`
	Pin         bool                `json:"pin,omitempty"`
	Far         []string            `json:"far,omitempty"`
	Notes       []string            `json:"notes,omitempty"`
}

// pluginAllowCommand shows what a plugin asks for, asks whether it may, and
// writes that down. What is written is of the very version that was shown.
func (a verbs) pluginAllowCommand() *cobra.Command {
	var f allowFlags
	c := &cobra.Command{
		Use: "allow NAME", Short: "Allow a plugin what it asks for, or a part of it",
		Long: "Shows what the plugin asks for and its reasons, and asks. Without a terminal --yes replaces\n" +
			"the answer. A grant counts on this machine and in this folder alone. A changed file that asks for\n" +
			"no more keeps it, unless the grant reaches far (secrets, writing, commands that change something)\n" +
			"or --pin was given. A folder is absolute, or relative to the workspace of the run.",
		Example: "  sentinel plugin allow slack_message\n" +
			"  sentinel plugin allow scan --only command=code/read,code/search --deny http --yes\n" +
			"  sentinel plugin allow report --folder data=reports:rw --secret TOKEN=api.example.com --timeout 30s",
		Args: app.ExactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			params, err := f.params(args[0], a, cmd.Flags().Changed)
			if err != nil {
				return err
			}
			a.ReportsPlugins = true
			s, err := a.Connect(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer a.CloseSession(s, &err)
			return a.allowPlugin(cmd.Context(), s, params, f)
		},
	}
	fl := c.Flags()
	fl.StringArrayVar(&f.only, "only", nil, "allow of a use these names alone: USE=NAME[,NAME...]; may be given several times")
	fl.StringArrayVar(&f.deny, "deny", nil, "do not allow this use; may be given several times")
	fl.StringArrayVar(&f.secrets, "secret", nil, "where a secret may be sent: NAME=HOST[,HOST...] (default: wherever its requests may go)")
	fl.StringArrayVar(&f.folders, "folder", nil, "the folder meant by the plugin's word for it: WORD=PATH, or WORD=PATH:rw to write too")
	fl.StringVar(&f.digest, "digest", "", "the version that was looked at, by the beginning of its digest (default: the newest)")
	fl.Int64Var(&f.memory, "memory", 0, "most memory of a guest of a step, 1 to 1024 MB (default: limits.guestMemory)")
	fl.DurationVar(&f.timeout, "timeout", 0, "most time of a step")
	fl.BoolVar(&f.reuse, "reuse", false, "let an instance of a stateless plugin serve several steps, which is faster")
	fl.BoolVar(&f.private, "private", false, "let its requests go to addresses that are not public")
	fl.BoolVar(&f.pin, "pin", false, "hold the grant to these very bytes")
	fl.BoolVar(&f.follow, "follow", false, "let a changed file that asks for no more keep a grant that reaches far, as while you write the plugin")
	fl.BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	fl.BoolVar(&f.n, "dry-run", false, "show what would be allowed, and change nothing")
	return c
}

// params are the flags as the command takes them. given reports whether a flag was used.
func (f allowFlags) params(name string, a verbs, given func(flag string) bool) (map[string]any, error) {
	p := map[string]any{"name": name, "by": a.User()}
	set := func(key string, value any, given bool) {
		if given {
			p[key] = value
		}
	}
	only := []map[string]any{}
	for _, text := range f.only {
		use, names, err := pair("--only", text, "USE=NAME[,NAME...]")
		if err != nil {
			return nil, err
		}
		only = append(only, map[string]any{"use": use, "names": strings.Split(names, ",")})
	}
	secrets := map[string][]string{}
	for _, text := range f.secrets {
		secret, hosts, err := pair("--secret", text, "NAME=HOST[,HOST...]")
		if err != nil {
			return nil, err
		}
		secrets[secret] = append(secrets[secret], strings.Split(hosts, ",")...)
	}
	folders := map[string]plugin.Folder{}
	for _, text := range f.folders {
		word, path, err := pair("--folder", text, "WORD=PATH[:rw]")
		if err != nil {
			return nil, err
		}
		path, write := strings.CutSuffix(path, ":rw")
		// A shell leaves it alone behind the =. Without a home it would be a folder of the
		// workspace.
		if path == "~" || strings.HasPrefix(path, "~/") {
			home := a.Env.Getenv("HOME")
			if home == "" {
				return nil, app.NewUsageError(fmt.Sprintf("--folder %q: the variable HOME is not set", text), "give the absolute path")
			}
			path = filepath.Join(home, strings.TrimPrefix(path, "~"))
		}
		if _, double := folders[word]; double {
			return nil, app.NewUsageError(fmt.Sprintf("--folder %s is given twice", word), "")
		}
		folders[word] = plugin.Folder{Path: path, Write: write}
	}
	if given("memory") && f.memory < 1 {
		return nil, app.NewUsageError(fmt.Sprintf("--memory %d is below 1", f.memory), "")
	}
	if given("timeout") && f.timeout < time.Millisecond {
		return nil, app.NewUsageError(fmt.Sprintf("--timeout %s is below 1ms", f.timeout), "")
	}
	set("only", only, len(only) > 0)
	set("deny", f.deny, len(f.deny) > 0)
	set("secrets", secrets, len(secrets) > 0)
	set("folders", folders, len(folders) > 0)
	set("digest", f.digest, f.digest != "")
	set("memoryMb", f.memory, f.memory > 0)
	set("timeoutMs", f.timeout.Milliseconds(), f.timeout > 0)
	set("reuse", true, f.reuse)
	set("private", true, f.private)
	set("pin", true, f.pin)
	set("follow", true, f.follow)
	return p, nil
}

// pair cuts the value of a flag at its first =.
func pair(flag, text, form string) (name, value string, err error) {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" || value == "" {
		return "", "", app.NewUsageError(fmt.Sprintf("%s %q is not %s", flag, text, form), "")
	}
	return name, value, nil
}

func (a verbs) allowPlugin(ctx context.Context, s *app.Session, params map[string]any, f allowFlags) error {
	params["dryRun"] = true
	var plan allowed
	if err := s.Call(ctx, "plugin/allow", params, &plan); err != nil {
		return err
	}
	if f.n {
		if a.Flags.Output != output.FormatTable {
			return a.WriteJSON(plan)
		}
		a.showAllowance(plan)
		return nil
	}
	if !f.yes || a.Flags.Output == output.FormatTable {
		a.showAllowance(plan)
	}
	if !f.yes {
		if !a.CanAsk() {
			return app.NewUsageError("no terminal to confirm the permissions", "read what it asks for, then add --yes: sentinel plugin allow "+plan.Plugin.Name+" --yes")
		}
		ok, err := a.Confirm(ctx, fmt.Sprintf("allow %s this?", plan.Plugin.Name))
		if err != nil || !ok {
			a.Info("nothing was allowed")
			return err
		}
	}
	delete(params, "dryRun")
	params["digest"] = plan.Digest // the version that was shown, and not one that was installed in between
	var done allowed
	if err := s.Call(ctx, "plugin/allow", params, &done); err != nil {
		return err
	}
	return a.decided(done)
}

// decided prints the state of a plugin after a decision.
func (a verbs) decided(done allowed) error {
	if a.Flags.Output != output.FormatTable {
		return a.WriteJSON(done)
	}
	p := done.Plugin
	text := fmt.Sprintf("plugin %s is %s", p.Name, p.State)
	if p.State == "" {
		text = fmt.Sprintf("plugin %s is denied, and there is no file of it", p.Name)
	}
	if v := p.Approval; v != nil && v.Denied && p.State != "" {
		text = fmt.Sprintf("plugin %s is denied", p.Name)
	} else if p.Problem != "" {
		text += ": " + p.Problem
	}
	if p.State == plugin.Live {
		names := make([]string, 0, len(p.Types))
		for _, t := range p.Types {
			names = append(names, string(t))
		}
		text += ", with the step types " + strings.Join(names, ", ")
	}
	return a.Out.Printf("%s\n", text)
}

// showAllowance writes what would be allowed, for the person who is asked.
func (a verbs) showAllowance(plan allowed) {
	var b output.Page
	p := plan.Plugin
	b.Printf("%s  %s  %s\n", a.Paint.Strong(output.Escape(p.Name)), p.Source, a.Paint.Dim(termtext.Sprintf("%.12s", plan.Digest)))
	writePermissions(&b, a.Paint, plan.Permissions, nil)
	if len(plan.Permissions) == 0 {
		b.Add("  it asks for nothing\n")
	}
	if plan.Grant != nil {
		writeGrant(&b, a.Paint, *plan.Grant)
	}
	for _, far := range plan.Far {
		b.Printf("  %s %s\n", a.Paint.Warn("far:     "), far)
	}
	if plan.Pin {
		b.Add("  for these bytes only: a changed file waits again\n")
	} else if len(plan.Permissions) > 0 {
		b.Add("  a changed file that asks for no more keeps this\n")
	}
	for _, note := range plan.Notes {
		b.Printf("  %s %s\n", a.Paint.Dim("note:    "), note)
	}
	a.PrintErr("%s", b.Text())
}
