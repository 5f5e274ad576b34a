package config

import (
	"slices"
	"time"

	"github.com/sentinel-runtime/sentinel/host/llm"
	"github.com/sentinel-runtime/sentinel/host/llm/providers"
	"github.com/sentinel-runtime/sentinel/host/notify"
	"github.com/sentinel-runtime/sentinel/host/secret"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A Config is the settings of a process. The tag doc is shown by `config
// show` and becomes the schema's description.
type Config struct {
	Models      Models      `json:"models" doc:"models and the servers that have them"`
	Serve       Serve       `json:"serve" doc:"the host process"`
	Plugins     Plugins     `json:"plugins" doc:"step plugins of others"`
	Limits      Limits      `json:"limits" doc:"bounds of what runs may use"`
	Retention   Retention   `json:"retention" doc:"how long runs that are over are kept"`
	Logs        Logs        `json:"logs" doc:"what the host process says"`
	Snapshots   Snapshots   `json:"snapshots" doc:"copies of the store, for recovery"`
	Tickets     Tickets     `json:"tickets" doc:"how work on tickets is retried and accepted"`
	Shell       Shell       `json:"shell" doc:"how the commands of steps, models and agents are executed"`
	HTTP        HTTP        `json:"http" doc:"requests of steps of type http and of the command http/request"`
	Verify      Verify      `json:"verify" doc:"how acceptance criteria are checked"`
	Worktrees   Worktrees   `json:"worktrees" doc:"working trees of claimed tickets"`
	Checkpoints Checkpoints `json:"checkpoints" doc:"states of workspaces, with which the changes of a run are taken back"`
	Forge       Forge       `json:"forge" doc:"where pull requests are opened; without a url they are recorded only"`
	Notify      Notify      `json:"notify" doc:"where people are notified of what waits for them"`
	Tracing     Tracing     `json:"tracing" doc:"OpenTelemetry traces; off without an endpoint"`
	Trust       Trust       `json:"trust" doc:"which files are obeyed although others could have written them"`

	Secrets secret.Places `json:"secrets" doc:"where the values are that plugins' requests carry by name: {\"env\": VARIABLE} or {\"file\": PATH}"`
}

// Models says which models there are. What it leaves out is taken from the
// environment.
type Models struct {
	Default   string          `json:"default" doc:"model of a step that names none or auto, provider/name"`
	Auto      []string        `json:"auto" doc:"candidates for auto, best first"`
	Fallback  []string        `json:"fallback" doc:"models for a turn that a rate limit, an overload or an outage has ended, best first, behind those of the step"`
	Capacity  llm.Capacity    `json:"capacity" doc:"models by capacity, for steps whose model is tiny, small, medium, large or sota"`
	Providers []llm.Provider  `json:"providers" doc:"added to those of the environment"`
	Known     []llm.Model     `json:"known" doc:"added to, and overriding, the built-in table of models and prices"`
	Servers   []providers.Row `json:"servers" doc:"added to, and changing, the built-in table of how the servers of models differ: errors, finish reasons, members of messages"`

	SecretFiles []string `json:"secretFiles" doc:"files that models read though their names say that they hold secrets: patterns of names such as .env.test, or of paths such as certs/*.pem"`
}

// Serve settles how the host process is reached and how it ends.
type Serve struct {
	Listen       string   `json:"listen" doc:"address of the API; empty for the socket in the state folder alone"`
	Hosts        []string `json:"hosts" doc:"further names under which the API may be asked, host or host:port"`
	TLSCert      string   `json:"tlsCert" doc:"file with the certificate; with tlsKey the API speaks TLS"`
	TLSKey       string   `json:"tlsKey" doc:"file with the certificate's key"`
	TLSElsewhere bool     `json:"tlsElsewhere" doc:"a proxy on another machine speaks TLS, so a public address may go without"`
	NoAuth       bool     `json:"noAuth" doc:"ask no token; only on a loopback address"`
	Drain        Duration `json:"drain" doc:"how long steps under way may go on when the process is asked to end"`
	Rescan       Duration `json:"rescan" doc:"how often the watched folder is read in case a change was not told"`
}

// Limits are those of the engine, by the names of [run.Limits], where 0 is the default, and those of
// the host.
type Limits struct {
	Runs             int      `json:"runs" doc:"runs that execute at once; waiting ones do not count"`
	Children         int      `json:"children" doc:"child runs of a run that execute at once; further ones wait"`
	Depth            int      `json:"depth" doc:"how deep child sentinels nest"`
	Steps            int      `json:"steps" doc:"step executions an iteration"`
	Hops             int      `json:"hops" doc:"runs that a chain of events may pass through"`
	EventBytes       Size     `json:"eventBytes" doc:"names and data of the events that an iteration emits"`
	Calls            int      `json:"calls" doc:"host calls of an attempt since its checkpoint"`
	CallBytes        Size     `json:"callBytes" doc:"requests and results of those calls"`
	LogLines         int      `json:"logLines" doc:"of an attempt; the others are dropped"`
	LogBytes         Size     `json:"logBytes" doc:"log lines of an attempt; the others are dropped"`
	StoredBytes      Size     `json:"storedBytes" doc:"variables and checkpoints that an attempt sets"`
	StepTimeout      Duration `json:"stepTimeout" doc:"of a step that names none"`
	Memory           Size     `json:"memory" doc:"variables, guests and processes of a run without maxMemoryMb; by default half of the machine's memory, or of the container's"`
	AgentMemory      Size     `json:"agentMemory" doc:"the same of a run whose definition a model or an agent wrote, within limits.memory"`
	AgentRuns        int      `json:"agentRuns" doc:"unfinished runs of an agent, or of all models: a start beyond that is refused, a child waits; what these runs were started with has limits.agentBytes in all"`
	AgentQuestions   int      `json:"agentQuestions" doc:"approvals that runs of an agent, or of all models, wait for; a step that asks for one more fails"`
	AgentStarts      int      `json:"agentStarts" doc:"runs that the triggers of the sentinels of an agent, or of all models, start in a minute; a quarter of these at once. Further firings wait, one for a sentinel, or are skipped"`
	AgentEvents      int      `json:"agentEvents" doc:"events that an agent, or all models, emit in a minute, with those of runs that their events start; a further one is refused, and a change of a ticket or a message with it"`
	VariableMemory   Size     `json:"variableMemory" doc:"variables of a run without maxMemoryMb, within limits.memory"`
	GuestMemory      Size     `json:"guestMemory" doc:"linear memory of a guest whose plugin was granted no other bound; 1 GB at most"`
	Resident         int      `json:"resident" doc:"waiting guests that stay in memory; negative keeps none"`
	ResidentBytes    Size     `json:"residentBytes" doc:"memory of those guests in all"`
	ResidentFor      Duration `json:"residentFor" doc:"how long each of them stays"`
	KeepIterations   int      `json:"keepIterations" doc:"whose records are kept for the trace"`
	KeepBytes        Size     `json:"keepBytes" doc:"of the journal of an active run"`
	KeepRevisions    int      `json:"keepRevisions" doc:"of a definition; the newest one of a person is kept beside them"`
	KeepEvents       int      `json:"keepEvents" doc:"in the event log"`
	KeepEventBytes   Size     `json:"keepEventBytes" doc:"of the event log"`
	Plugins          int      `json:"plugins" doc:"plugins of others that are live"`
	PluginBytes      Size     `json:"pluginBytes" doc:"of their files in all"`
	Crashes          int      `json:"crashes" doc:"crashes in the same step until it is quarantined"`
	FreeSpace        Size     `json:"freeSpace" doc:"below this much free disk nothing new starts"`
	AgentDefinitions int      `json:"agentDefinitions" doc:"definitions of an agent, or of all models; all of them together may have four times as many"`
	AgentBytes       Size     `json:"agentBytes" doc:"documents, chat messages and memories of an agent, or of all models; all of them together have four times as much. Those of persons do not count. As much again for the kept revisions of definitions"`
}

// Retention bounds the runs that have ended.
type Retention struct {
	Age        Duration `json:"age" doc:"older runs go; 0 keeps them"`
	Runs       int      `json:"runs" doc:"of a sentinel; 0 is no bound"`
	Size       Size     `json:"size" doc:"of journals, results and logs in all; 0 is no bound"`
	KeepFailed int      `json:"keepFailed" doc:"runs that failed or reached a limit are kept so many times as long, and so many times as many; 1 is like others"`
	Every      Duration `json:"every" doc:"how often it is looked after"`
}

// Logs settles the host process's own log.
type Logs struct {
	Level   string   `json:"level" doc:"debug, info, warn or error"`
	Format  string   `json:"format" doc:"text or json"`
	File    string   `json:"file" doc:"file that takes it; empty is standard error"`
	Size    Size     `json:"size" doc:"of the file, when it is rotated"`
	Keep    int      `json:"keep" doc:"rotated files that stay"`
	Age     Duration `json:"age" doc:"of rotated files; 0 keeps them"`
	RunSize Size     `json:"runSize" doc:"of the log of one run"`
}

// Plugins settles what counts of step plugins that others wrote. It is read from
// the user's own file and the environment alone, never from a project.
type Plugins struct {
	Keys        []PluginKey `json:"keys" doc:"public keys whose signatures count; with any, what is not signed is not installed"`
	TrustGrants bool        `json:"trustGrants" doc:"count grants of other users, such as those in a container's image"`
}

// Trust widens whose files are obeyed; see package trust. It is read from the user's
// own file, the environment and the command line, never from a project. What holds for
// the configuration file itself comes from the latter two.
type Trust struct {
	Paths  []string `json:"paths" doc:"absolute paths; owners and modes of what is at or below one do not count"`
	Groups []string `json:"groups" doc:"names or numbers of groups whose members may write files that are obeyed"`
	Roots  []string `json:"roots" doc:"absolute paths; what came with a project at or below one counts without a question, see sentinel trust"`
}

// A PluginKey is a public key of the minisign kind.
type PluginKey struct {
	ID      string `json:"id,omitempty" doc:"id of the key, for people"`
	Key     string `json:"key" check:"required" doc:"the line of the public key that begins with RW"`
	Comment string `json:"comment,omitempty" doc:"for people"`
}

// Snapshots settles copies of the store.
type Snapshots struct {
	Every Duration `json:"every" doc:"how often, if something changed; 0 is never"`
	Keep  int      `json:"keep" doc:"the newest, of each reason to take one"`
}

// Values of settings that switch something.
const (
	On   = "on"
	Off  = "off"
	Auto = "auto"
)

// Tickets settles how work on tickets is retried and accepted.
type Tickets struct {
	Profile     string   `json:"profile" doc:"strategies of retries: fine, a strategy for each category of errors, or coarse, one for each of five classes"`
	Reviews     int      `json:"reviews" doc:"rejections by a reviewer that are retried"`
	ReviewDelay Duration `json:"reviewDelay" doc:"delay after a rejection, times the number of rejections"`
	Lease       Duration `json:"lease" doc:"how long a claim holds without a heartbeat"`
	Unverified  bool     `json:"unverified" doc:"work on tickets without acceptance criteria may be done; else it is blocked"`
	Review      string   `json:"review" doc:"whether finished work waits for a reviewer: on, off, or auto, which is on while a sentinel is armed that claims tickets as reviewer"`
	Approval    string   `json:"approval" doc:"whether a person approves work, after its review: on or off"`
	Deploy      string   `json:"deploy" doc:"whether deployers claim work before it is done, after its approval: on or off"`
	Trials      bool     `json:"trials" doc:"proposed rules are in half of the prompts that they fit, to measure whether they help"`
}

// Verify settles how acceptance criteria are checked.
type Verify struct {
	Listen     string   `json:"listen" doc:"host:port of a server with the verifier alone, such as 127.0.0.1:8090; empty is none. serve.listen has it too"`
	URL        string   `json:"url" doc:"where checks of type http_request go that have no service; if empty, those that a person wrote go to http://localhost:3000, and those of agents are refused"`
	Env        []string `json:"env" doc:"names of variables that checks get, and {{NAME}} reads"`
	Read       []string `json:"read" doc:"folders outside of the checkout that commands of checks may read, and that repositories may lead to"`
	Timeout    Duration `json:"timeout" doc:"of a check that names none"`
	Attempts   int      `json:"attempts" doc:"verifications of a claim that may fail before a person decides"`
	SSHKey     string   `json:"sshKey" doc:"file of the private key for repositories over ssh; default the variable GIT_SSH_KEY_PATH, else ssh's own"`
	KnownHosts string   `json:"knownHosts" doc:"file of the keys of ssh hosts; default ssh's own"`
	Network    string   `json:"network" doc:"of the commands of checks: open, or closed for a loopback interface of their own"`
	Require    []string `json:"require" doc:"walls without which no command of a check is executed: namespaces, landlock, seccomp, cgroup; sentinel doctor says which there are"`
}

// Shell settles which commands are confined as those of checks are.
type Shell struct {
	Confine string   `json:"confine" doc:"whose commands cannot leave the workspace: none, agents (those of models and agents) or all"`
	Env     []string `json:"env" doc:"names of variables of the host that programs of steps get too; * in a name is any characters, * alone is all. Those of models and agents get none that look like a secret's"`
}

// HTTP settles where requests go.
type HTTP struct {
	Private []string `json:"private" doc:"hosts that may have addresses of private networks or of this machine, such as localhost:3000, localhost:* for any port, or *.corp.example; all others have to have public ones"`
}

// Values of settings.
const (
	Open   = "open"
	Closed = "closed"
	None   = "none"
	Agents = "agents"
	All    = "all"
)

// Worktrees bounds the working trees of claimed tickets.
type Worktrees struct {
	Most int  `json:"most" doc:"at one time"`
	Size Size `json:"size" doc:"of all together; also of the copy of a repository, and of the files of a commit, that a verification makes"`
}

// Checkpoints bounds the states of each workspace that are kept; the oldest ones go.
type Checkpoints struct {
	Keep     int  `json:"keep" doc:"of a workspace, at least 4"`
	Size     Size `json:"size" doc:"of those of a workspace together"`
	FileSize Size `json:"fileSize" doc:"of larger files no content is kept, only that they exist"`

	IgnoredFileSize Size `json:"ignoredFileSize" doc:"the same for files that git ignores"`
	IgnoredSize     Size `json:"ignoredSize" doc:"of the kept files that git ignores together"`
	IgnoredFiles    int  `json:"ignoredFiles" doc:"number of kept files that git ignores; those in the uppermost folders first"`
}

// Forge settles where pull requests are opened.
type Forge struct {
	URL   string `json:"url" doc:"of the server as people see it, such as https://github.com; empty is none"`
	Kind  string `json:"kind" doc:"github, gitlab, gitea or forgejo; default github for github.com, gitlab for gitlab.com, else gitea"`
	Token string `json:"token" doc:"name of the secret with the token, which pushes over https to this server have too"`
}

// Notify settles where messages for people are sent.
type Notify struct {
	Webhook  string   `json:"webhook" doc:"URL that gets a POST for each message; https, or http on this machine; empty is none"`
	Secret   string   `json:"secret" doc:"name of the secret that signs these requests as Standard Webhooks define: base64 with an optional prefix whsec_; empty leaves them unsigned"`
	Format   string   `json:"format" doc:"of the body that the webhook gets: standard, slack, discord, teams, ntfy, or template"`
	Template string   `json:"template" doc:"of the body with the format template: a text/template of Go that makes JSON, such as {\"msg\": {{json .Title}}}; .Title, .Text, .Severity, .Event, .Ticket, .Run, .URL, .By"`
	Email    Email    `json:"email" doc:"mail server that sends each message"`
	Command  string   `json:"command" doc:"shell line that is executed for each message: the message as JSON is its standard input, and SENTINEL_NOTIFY_TITLE, _TEXT, _SEVERITY, _RUN, _TICKET and _BY are in its environment"`
	Timeout  Duration `json:"timeout" doc:"of a delivery to one target"`
	On       []string `json:"on" doc:"what people are notified of: failed, timed_out, waiting, quarantined, interrupted, skipped, recovered, overdue, paused, tickets; notify of a definition has precedence for its runs"`
	Rate     int      `json:"rate" doc:"messages in an hour; further ones are left out, and one message says how many; 0 removes the limit"`
}

// Email settles the mail server that sends messages for people.
type Email struct {
	Server   string   `json:"server" doc:"HOST:PORT of the mail server, such as mail.example.org:587; empty is none"`
	From     string   `json:"from" doc:"address of the sender"`
	To       []string `json:"to" doc:"addresses of the recipients"`
	User     string   `json:"user" doc:"name for the mail server; empty is without authentication"`
	Password string   `json:"password" doc:"name of the secret with the password of the user"`
	TLS      string   `json:"tls" doc:"starttls, tls, or none for a server on this machine"`
}

// Tracing settles OpenTelemetry.
type Tracing struct {
	Endpoint string `json:"endpoint" doc:"OTLP over HTTP, such as http://127.0.0.1:4318"`
}

// Default returns the default settings.
func Default() Config {
	day := 24 * time.Hour
	c := Config{
		Models:      Models{Default: "auto"},
		Serve:       Serve{Listen: "127.0.0.1:8080", Drain: Duration(20 * time.Second), Rescan: Duration(30 * time.Second)},
		Retention:   Retention{Age: Duration(30 * day), Runs: 1000, Size: 2 << 30, KeepFailed: 3, Every: Duration(time.Hour)},
		Logs:        Logs{Level: "info", Format: "text", Size: 16 << 20, Keep: 5, Age: Duration(30 * day), RunSize: 16 << 20},
		Snapshots:   Snapshots{Every: Duration(time.Hour), Keep: 3},
		Tickets:     Tickets{Profile: "fine", Reviews: 2, ReviewDelay: Duration(5 * time.Second), Lease: Duration(5 * time.Minute), Review: Auto, Approval: Off, Deploy: Off},
		Verify:      Verify{Timeout: Duration(5 * time.Minute), Attempts: 3, Network: Open},
		Shell:       Shell{Confine: None},
		Worktrees:   Worktrees{Most: 16, Size: 10 << 30},
		Checkpoints: Checkpoints{Keep: 100, Size: 2 << 30, FileSize: 10 << 20, IgnoredFileSize: 1 << 20, IgnoredSize: 64 << 20, IgnoredFiles: 3000},
		Forge:       Forge{Token: "FORGE_TOKEN"},
		Notify:      Notify{Format: notify.Standard, Timeout: Duration(10 * time.Second), Rate: 60, Email: Email{TLS: notify.StartTLS}},
		Limits:      Limits{FreeSpace: 64 << 20, AgentBytes: 64 << 20},
	}
	c.Notify.On = slices.DeleteFunc(sentinels.NotifyKinds(), func(kind string) bool {
		return kind == sentinels.SentinelRecovered || kind == sentinels.SentinelSkipped
	})
	c.Limits.fill()
	return c
}
