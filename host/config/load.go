package config

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/confine"
	"github.com/sentinel-runtime/sentinel/host/internal/endpoint"
	"github.com/sentinel-runtime/sentinel/host/internal/trust"
	"github.com/sentinel-runtime/sentinel/host/llm"
	"github.com/sentinel-runtime/sentinel/host/notify"
	"github.com/sentinel-runtime/sentinel/host/plugin/egress"
	"github.com/sentinel-runtime/sentinel/host/secret"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/glob"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// Options say where settings come from. The zero value reads the user's file
// and the environment.
type Options struct {
	// File is the configuration file; one that is not there is an empty one.
	// Default: [Path].
	File string
	// Getenv reads the environment. Default os.Getenv.
	Getenv func(string) string
	// Flags are settings of the command line by key. Default none.
	Flags map[string]string
	// IgnoreUnknown ignores settings that this program does not know, see
	// [Loaded.Unknown]. Default false: they are problems.
	IgnoreUnknown bool
	// FlagNames are the names of those flags by key, for origins and errors. Default: the
	// keys.
	FlagNames map[string]string
}

// A Setting is one value and where it came from.
type Setting struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Origin string `json:"origin"` // "default", "FILE:LINE", "SENTINEL_SERVE_LISTEN", "--listen"
	Doc    string `json:"doc,omitempty"`
}

// A Loaded is the settings of a process together with their origins.
type Loaded struct {
	Config
	File     string // that was read or would be
	Settings []Setting
	Unknown  []string      // settings that were ignored, with their places
	Policy   *trust.Policy // of the settings trust.paths and trust.groups
}

// envPattern matches names of environment variables, with * for any characters.
var envPattern = lazyregexp.New(`^[A-Za-z_*][A-Za-z0-9_*]*$`)

// Path is sentinel/config.json in the user's configuration folder, empty where
// that folder is unknown.
func Path(getenv func(string) string) string {
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "sentinel", "config.json")
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "sentinel", "config.json")
}

// EnvName is the variable that overrides a setting.
func EnvName(key string) string {
	var b strings.Builder
	b.WriteString("SENTINEL_")
	for i, r := range key {
		switch {
		case r == '.':
			b.WriteByte('_')
			continue
		case r >= 'A' && r <= 'Z' && i > 0 && key[i-1] >= 'a':
			b.WriteByte('_')
		}
		b.WriteString(strings.ToUpper(string(r)))
	}
	return b.String()
}

// Load reads all settings. Every problem is reported, with file, line and column
// or the name of the variable or flag. Of a file that is not strict JSON that is
// the first mistake.
func Load(opt Options) (*Loaded, error) {
	if opt.Getenv == nil {
		opt.Getenv = os.Getenv
	}
	if opt.File == "" {
		opt.File = Path(opt.Getenv)
	}
	l := &Loaded{Config: Default(), File: opt.File}
	leaves := leavesOf(&l.Config)
	origins := map[string]string{}
	var problems []string
	r := &reader{path: opt.File, leaves: leaves, origins: origins}
	if opt.File != "" {
		early, err := opt.early()
		if err != nil {
			return nil, err
		}
		src, err := early.Read(opt.File, maxFile)
		if e := abi.As(err); e != nil {
			return nil, e
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read configuration: %w", err)
		}
		if err == nil {
			problems = r.read(src)
			if opt.IgnoreUnknown && len(problems) == len(r.unknown) { // else all that has to be mended is named
				l.Unknown, problems = r.unknown, nil
			}
		}
	}
	for _, f := range leaves {
		if text := opt.Getenv(EnvName(f.key)); text != "" {
			if err := f.set(text); err != nil {
				problems = append(problems, fmt.Sprintf("%s: %v", EnvName(f.key), err))
			}
			origins[f.key] = EnvName(f.key)
		}
		if text, ok := opt.Flags[f.key]; ok {
			if err := f.set(text); err != nil {
				problems = append(problems, fmt.Sprintf("%s: %v", opt.flag(f.key), err))
			}
			origins[f.key] = opt.flag(f.key)
		}
	}
	problems = append(problems, l.check(origins)...)
	var err error
	if len(problems) == 0 { // else the models may lack what a problem is about
		problems = l.checkModels(opt.Getenv, r, origins)
	}
	if l.Policy, err = l.Trust.policy(); err != nil {
		problems = append(problems, err.Error())
	}
	if len(problems) > 0 {
		return nil, &abi.Error{Code: abi.BadFields, Permanent: true, Message: strings.Join(problems, "\n"),
			Hint: "`sentinel config schema` shows what there is to set"}
	}
	l.Limits.fill()
	for _, f := range leaves {
		origin := origins[f.key]
		if origin == "" {
			origin = "default"
		}
		l.Settings = append(l.Settings, Setting{f.key, f.value.Interface(), origin, f.doc})
	}
	return l, nil
}

// fill replaces zeros by the defaults of the engine, so that the settings show the limits that hold.
func (c *Limits) fill() {
	engine, own := reflect.ValueOf(run.Limits{}.WithDefaults()), reflect.ValueOf(c).Elem()
	for i := range engine.NumField() {
		if f := own.FieldByName(engine.Type().Field(i).Name); f.IsZero() {
			f.SetInt(engine.Field(i).Int())
		}
	}
}

// flag is the flag of a setting as a user types it.
func (o Options) flag(key string) string { return "--" + cmp.Or(o.FlagNames[key], key) }

// early returns the policy for the configuration file, from what does not depend on
// the file.
func (o Options) early() (*trust.Policy, error) {
	var c Config
	for _, f := range leavesOf(&c) {
		if !strings.HasPrefix(f.key, "trust.") {
			continue
		}
		name, text := o.flag(f.key), o.Flags[f.key]
		if _, ok := o.Flags[f.key]; !ok {
			name, text = EnvName(f.key), o.Getenv(EnvName(f.key))
		}
		if err := f.set(text); err != nil {
			return nil, &abi.Error{Code: abi.BadFields, Permanent: true, Message: fmt.Sprintf("%s: %v", name, err)}
		}
	}
	p, err := c.Trust.policy()
	if err != nil {
		return nil, &abi.Error{Code: abi.BadFields, Permanent: true, Message: err.Error()}
	}
	return p, nil
}

// policy returns what the settings mean.
func (t Trust) policy() (*trust.Policy, error) {
	p, err := trust.New(trust.Options{Paths: t.Paths, Groups: t.Groups})
	for _, root := range t.Roots {
		if !filepath.IsAbs(root) {
			err = errors.Join(err, fmt.Errorf("trusted root %q: not absolute", root))
		}
	}
	return p, err
}

// check finds values that each setting alone would allow.
func (l *Loaded) check(origins map[string]string) []string {
	var problems []string
	say := func(key, format string, args ...any) {
		at := origins[key]
		if at == "" {
			at = "default"
		}
		problems = append(problems, fmt.Sprintf("%s: %s: %s", at, key, fmt.Sprintf(format, args...)))
	}
	oneOf := func(key, value string, choices ...string) {
		for _, c := range choices {
			if value == c {
				return
			}
		}
		say(key, "%q is none of %s", value, strings.Join(choices, ", "))
	}
	for _, pattern := range l.Models.SecretFiles {
		if _, err := glob.Parse(pattern); err != nil {
			say("models.secretFiles", "%v", err)
		}
	}
	oneOf("logs.level", l.Logs.Level, "debug", "info", "warn", "error")
	oneOf("logs.format", l.Logs.Format, "text", "json")
	if l.Retention.KeepFailed < 1 {
		say("retention.keepFailed", "invalid number %d: want at least 1", l.Retention.KeepFailed)
	}
	if l.Snapshots.Keep < 1 {
		say("snapshots.keep", "invalid number %d: want at least 1", l.Snapshots.Keep)
	}
	oneOf("tickets.profile", l.Tickets.Profile, "fine", "coarse")
	oneOf("tickets.review", l.Tickets.Review, Auto, On, Off)
	oneOf("tickets.approval", l.Tickets.Approval, On, Off)
	oneOf("tickets.deploy", l.Tickets.Deploy, On, Off)
	if l.Tickets.Reviews < 0 {
		say("tickets.reviews", "invalid number %d: want at least 0", l.Tickets.Reviews)
	}
	if d := l.Tickets.Lease.Std(); d < time.Second || d > 24*time.Hour {
		say("tickets.lease", "invalid duration %s: want 1s to 24h", d)
	}
	if d := l.Tickets.ReviewDelay.Std(); d < 0 {
		say("tickets.reviewDelay", "invalid duration %s: want at least 0", d)
	}
	if d := l.Verify.Timeout.Std(); d < time.Second || d > time.Hour {
		say("verify.timeout", "invalid duration %s: want 1s to 1h", d)
	}
	oneOf("verify.network", l.Verify.Network, Open, Closed)
	oneOf("shell.confine", l.Shell.Confine, None, Agents, All)
	for _, name := range l.Shell.Env {
		switch hidden, ofSecret := strings.CutPrefix(name, secret.Env); {
		case !envPattern.MatchString(name):
			say("shell.env", "invalid name of a variable %q: want letters, digits and _, not a digit first, and * for any of them", name)
		case ofSecret:
			say("shell.env", `%s holds a secret of the host: write {"secret": %q} in the "env" of a step`, name, hidden)
		}
	}
	for _, wall := range l.Verify.Require {
		oneOf("verify.require", wall, confine.Walls()...)
	}
	if l.Verify.Attempts < 1 {
		say("verify.attempts", "invalid number %d: want at least 1", l.Verify.Attempts)
	}
	for _, name := range l.Verify.Env {
		if name == "" || strings.ContainsAny(name, "= \x00") {
			say("verify.env", "invalid name %q", name)
		}
	}
	for _, host := range l.HTTP.Private {
		if e := abi.As(egress.CheckPrivate(host)); e != nil {
			say("http.private", "%s: %s", e.Message, e.Hint)
		}
	}
	if u, err := url.Parse(l.Verify.URL); l.Verify.URL != "" && (err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https") {
		say("verify.url", "invalid URL: want http://HOST:PORT")
	}
	if l.Checkpoints.Keep < 4 {
		say("checkpoints.keep", "invalid number %d: want at least 4", l.Checkpoints.Keep)
	}
	if l.Checkpoints.Size < 1<<20 {
		say("checkpoints.size", "invalid size: want at least 1MB")
	}
	if l.Checkpoints.FileSize < 1<<10 {
		say("checkpoints.fileSize", "invalid size: want at least 1KB")
	}
	if l.Checkpoints.IgnoredFileSize < 1 {
		say("checkpoints.ignoredFileSize", "invalid size: want at least 1 byte")
	}
	if l.Checkpoints.IgnoredSize < 1 {
		say("checkpoints.ignoredSize", "invalid size: want at least 1 byte")
	}
	if l.Checkpoints.IgnoredFiles < 1 {
		say("checkpoints.ignoredFiles", "invalid number %d: want at least 1", l.Checkpoints.IgnoredFiles)
	}
	if l.Worktrees.Most < 1 {
		say("worktrees.most", "invalid number %d: want at least 1", l.Worktrees.Most)
	}
	if l.Worktrees.Size < 1<<20 {
		say("worktrees.size", "invalid size: want at least 1MB")
	}
	if l.Forge.URL != "" {
		if _, ok := endpoint.Parse(l.Forge.URL); !ok {
			say("forge.url", "invalid URL: want https://HOST without credentials; http only for this machine")
		}
	}
	if l.Forge.Kind != "" {
		oneOf("forge.kind", l.Forge.Kind, "github", "gitlab", "gitea", "forgejo")
	}
	if !secret.Named(l.Forge.Token) {
		say("forge.token", "invalid name of a secret: want capital letters, digits and underscores")
	}
	if u, err := url.Parse(l.Notify.Webhook); l.Notify.Webhook != "" && (err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http") {
		say("notify.webhook", "invalid URL: want https://HOST/PATH without credentials")
	}
	if l.Notify.Secret != "" && !secret.Named(l.Notify.Secret) {
		say("notify.secret", "invalid name of a secret: want capital letters, digits and underscores")
	}
	for _, kind := range l.Notify.On {
		oneOf("notify.on", kind, sentinels.NotifyKinds()...)
	}
	oneOf("notify.format", l.Notify.Format, notify.Formats()...)
	switch {
	case l.Notify.Format == notify.Template:
		if e := abi.As(notify.CheckTemplate(l.Notify.Template)); e != nil {
			say("notify.template", "%s; %s", strings.TrimPrefix(e.Message, "notify.template: "), e.Hint)
		}
	case l.Notify.Template != "":
		say("notify.template", "is read with the format template only: set notify.format to template")
	}
	oneOf("notify.email.tls", l.Notify.Email.TLS, notify.TLSModes()...)
	mail := notify.Email{Server: l.Notify.Email.Server, From: l.Notify.Email.From, To: l.Notify.Email.To, User: l.Notify.Email.User, TLS: l.Notify.Email.TLS}
	if name := l.Notify.Email.Password; name != "" {
		mail.Password = func() (string, error) { return "", nil } // Check asks only whether there is one
		if !secret.Named(name) {
			say("notify.email.password", "invalid name of a secret: want capital letters, digits and underscores")
		}
	}
	if key, problem := mail.Check(); problem != "" {
		say(key, "%s", problem)
	}
	if d := l.Notify.Timeout.Std(); d < time.Second || d > time.Minute {
		say("notify.timeout", "invalid duration %s: want 1s to 1m", d)
	}
	if (l.Serve.TLSCert == "") != (l.Serve.TLSKey == "") {
		say("serve.tlsCert", "TLS needs both tlsCert and tlsKey")
	}
	return problems
}

// checkModels finds what [llm.Open] would refuse at every start.
func (l *Loaded) checkModels(getenv func(string) string, r *reader, origins map[string]string) []string {
	m, err := llm.Open(llm.Config{
		Default: l.Models.Default, Auto: l.Models.Auto, Fallback: l.Models.Fallback, Capacity: l.Models.Capacity, Providers: l.Models.Providers, Models: l.Models.Known, Servers: l.Models.Servers, Env: getenv,
	})
	if err == nil {
		_ = m.Close() // nothing was requested
		return nil
	}
	bad := (*llm.Mistake)(nil)
	if !errors.As(err, &bad) {
		return nil // of the environment, which is no setting
	}
	key := "models." + bad.Key
	at := r.place(key, bad.Path)
	if at == "" || !strings.HasPrefix(origins[key], r.path) {
		at = cmp.Or(origins[key], "default")
	}
	return []string{fmt.Sprintf("%s: %s: %v", at, key+bad.Path, bad)}
}

// A leaf is one setting in a Config.
type leaf struct {
	key, doc string
	value    reflect.Value // settable
}

// Keys returns the keys of all settings.
func Keys() (keys []string) {
	for _, f := range leavesOf(&Config{}) {
		keys = append(keys, f.key)
	}
	return keys
}

func leavesOf(c *Config) []leaf {
	var out []leaf
	var walk func(prefix string, v reflect.Value)
	walk = func(prefix string, v reflect.Value) {
		for i := range v.NumField() {
			f := v.Type().Field(i)
			key := prefix + f.Tag.Get("json")
			if f.Type.Kind() == reflect.Struct {
				walk(key+".", v.Field(i))
				continue
			}
			out = append(out, leaf{key, f.Tag.Get("doc"), v.Field(i)})
		}
	}
	walk("", reflect.ValueOf(c).Elem())
	return out
}

// set reads a value as people type it: lists of words have commas between them,
// everything larger is JSON.
func (f leaf) set(text string) error {
	if u, ok := f.value.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	switch f.value.Interface().(type) {
	case string:
		f.value.SetString(text)
	case bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		f.value.SetBool(b)
	case int:
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return fmt.Errorf("%q is no whole number", text)
		}
		f.value.SetInt(int64(n))
	case []string:
		var list []string
		for item := range strings.SplitSeq(text, ",") {
			if item = strings.TrimSpace(item); item != "" {
				list = append(list, item)
			}
		}
		f.value.Set(reflect.ValueOf(list))
	default:
		return f.decode([]byte(text))
	}
	return nil
}

// decode reads a value as the file has it.
func (f leaf) decode(raw []byte) error {
	if bad := f.mistakes(raw); len(bad) > 0 {
		return bad[0]
	}
	fresh := reflect.New(f.value.Type())
	err := strictjson.Decode(raw, fresh.Interface(), strictjson.Limits{})
	if bad := (*strictjson.Error)(nil); errors.As(err, &bad) && bad.Path != "" {
		return fmt.Errorf("%s: %s", bad.Path, bad.Reason)
	} else if bad != nil {
		return errors.New(bad.Reason)
	}
	if n, ok := fresh.Elem().Interface().(int); ok && n < 0 {
		return fmt.Errorf("%d is negative", n)
	}
	f.value.Set(fresh.Elem())
	return nil
}

// suggestion names what may have been meant.
func suggestion(key string, known []string) string {
	if near := sentinels.Suggest(key, known); len(near) > 0 {
		return fmt.Sprintf(", did you mean %q?", near[0])
	}
	return ""
}
