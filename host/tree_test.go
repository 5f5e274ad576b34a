package host_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/sentinel-runtime/sentinel/"

// strictJSON reads all JSON that comes from outside, so every package may import
// it but guests and what guests are made with.
const strictJSON = "sentinels/strictjson"

// lazyRegexp compiles regular expressions when they are first used, for the same
// packages.
const lazyRegexp = "internal/lazyregexp"

// textCut bounds texts, for the same packages.
const textCut = "internal/textcut"

// regularFile opens files that have to be regular ones, for the same packages.
const regularFile = "internal/regularfile"

// pathText writes names of files as text, for the same packages.
const pathText = "internal/pathtext"

// modelData marks what models read as data, for the same packages.
const modelData = "internal/modeldata"

// everywhere are the packages that all folders but plugins and sdk import.
var everywhere = []string{strictJSON, lazyRegexp, textCut, regularFile, pathText, modelData}

// A layer says what packages that match a pattern may import: of this module,
// and of others. The first pattern that matches counts. STYLE of the project:
// a host loads sentinels, runs step plugins, fired by triggers.
type layer struct {
	pattern string
	own     []string // patterns of this module's packages
	others  []string // module paths of others; nil is none
}

// cobra is what verbs are made with.
var cobra = []string{"github.com/spf13/cobra", "github.com/spf13/pflag"}

var layers = []layer{
	{lazyRegexp, nil, nil},
	{textCut, nil, nil},
	{modelData, nil, nil},
	{regularFile, nil, nil},
	{pathText, nil, nil},
	{"internal/fairqueue", nil, nil},
	{"internal/boundedregexp", nil, nil},
	{"sentinels/strictjson", nil, []string{"github.com/go-json-experiment/json"}},
	{"internal/linediff", nil, nil},
	{"internal/needs", nil, nil}, // of tests alone
	{"sentinels/internal/schemacost", []string{"internal/boundedregexp", "sentinels/strictjson"}, []string{"github.com/santhosh-tekuri/jsonschema/v6"}},
	{"sentinels/glob", nil, []string{"github.com/bmatcuk/doublestar/v4"}},
	{"sentinels/reference", []string{"sentinels/strictjson", "sentinels/internal/schemacost"}, nil}, // the references within a schema
	{"sentinels", []string{"sentinels/strictjson", "sentinels/reference", "sentinels/internal/*", "internal/linediff", "internal/textcut"}, []string{"github.com/santhosh-tekuri/jsonschema/v6", "golang.org/x/text"}},
	{"sdk/abi", nil, nil},
	{"sdk/internal/**", []string{"sdk/abi", "sdk/internal/**"}, nil},
	{"sdk", []string{"sdk/abi", "sdk/internal/**"}, nil},
	{"sdk/javascript/engine/build", []string{"sdk/javascript"}, nil},                // it makes what that package embeds
	{"sdk/toolchain", []string{"sdk", "sdk/*", "sdk/internal/**", strictJSON}, nil}, // a new project holds a copy of its SDK; its file is read
	{"sdk/toolchain/toolchaintest", []string{"sdk/toolchain"}, nil},
	{"sdk/role", []string{"sdk/abi"}, nil}, // what the host and a role agree on
	{"sdk/**", []string{"sdk", "sdk/abi", "sdk/role", "sdk/internal/**"}, nil},
	{"plugins", nil, nil},
	{"plugins/internal/**", []string{"plugins/**", "sdk", "sdk/abi"}, nil},
	{"plugins/http", []string{"plugins/http/fields", "sdk"}, nil},
	{"plugins/http/fields", nil, nil}, // the guest and the host share it
	{"plugins/builtin", []string{"plugins/*", "sdk"}, nil},
	{"plugins/*", []string{"plugins/sentinel", "plugins/group", "sdk", "sdk/abi"}, nil}, // wait and watch return the result of a run as sentinel does, loop ends as group does
	{"triggers", []string{"sentinels"}, nil},
	{"triggers/cron", []string{"triggers", "sentinels"}, []string{"github.com/robfig/cron/v3"}},
	{"triggers/files", []string{"triggers", "sentinels", "sentinels/glob"}, []string{"github.com/fsnotify/fsnotify"}},
	{"triggers/webhook", []string{"triggers", "sentinels", "sdk/abi"}, nil}, // its errors have codes
	{"triggers/standard", []string{"triggers", "triggers/*"}, nil},
	{"triggers/*", []string{"triggers", "sentinels"}, nil},
	{"runtime/retry", []string{"sentinels", "sdk/abi", "sdk/role"}, nil},
	{"sentinels/continuum", []string{"sentinels", strictJSON}, nil},
	{"runtime/run", []string{"sentinels", "sdk/abi"}, nil},
	{"runtime/internal/openfiles", nil, nil},
	{"runtime/internal/subprocess", nil, []string{"golang.org/x/sys"}}, // shared by those that start children
	{"runtime/internal/cond", []string{"internal/fairqueue", "sentinels", "sdk/abi", "runtime/internal/openfiles", "runtime/internal/subprocess"}, []string{"github.com/dop251/goja", "golang.org/x/sys"}},
	{"runtime/internal/store", []string{"sdk/abi"}, []string{"go.etcd.io/bbolt", "golang.org/x/sys"}},
	{"runtime/internal/store/storetest", []string{"runtime/internal/store"}, []string{"github.com/google/go-cmp"}},
	{"runtime/internal/wasm/binary", []string{"sdk/abi"}, nil},
	{"runtime/internal/wasm/binary/binarytest", []string{"runtime/internal/wasm/binary"}, nil},
	{"runtime/internal/wasm/clock", nil, nil},
	{"runtime/internal/wasm/compilecache", []string{"sdk/abi"}, nil},
	{"runtime/internal/wasm/link", []string{"sdk/abi", "runtime/internal/wasm/binary", "runtime/internal/wasm/manifest"}, nil},
	{"runtime/internal/wasm/manifest", []string{"sentinels", strictJSON, "sdk/abi", "sdk/role"}, nil},
	{"runtime/internal/wasm/memory", []string{"sdk/abi"}, nil},
	{"runtime/internal/wasm/pool", nil, nil},
	{"runtime/internal/wasm/rewrite", []string{"runtime/internal/wasm/binary"}, nil},
	{"runtime/internal/wasm", []string{"sentinels", strictJSON, "sdk/abi", "runtime/internal/subprocess", "runtime/internal/wasm/*"}, []string{"github.com/extism/go-sdk", "github.com/tetratelabs/wazero", "golang.org/x/sys"}},
	{"runtime/trace", []string{"sentinels", "sdk/abi"}, nil},
	{"runtime/internal/history", []string{"sentinels", "sdk/abi", "runtime/run", "runtime/trace", "runtime/internal/journal", lazyRegexp}, nil}, // folds its records
	{"runtime/plugin", []string{"sentinels", "sdk/abi"}, nil},
	{"runtime/maintenance", []string{"sentinels"}, nil},
	{"runtime/internal/maintenance/health", []string{"sdk/abi", "runtime/run", "runtime/maintenance", "runtime/internal/store", "runtime/internal/maintenance/statefolder"}, nil},
	{"runtime/internal/maintenance/snapshots", []string{"sdk/abi", "runtime/maintenance", "runtime/internal/store", "runtime/internal/maintenance/statefolder"}, nil},
	{"runtime/internal/maintenance/repair", []string{"sentinels", "sdk/abi", "runtime/maintenance", "runtime/internal/history", "runtime/internal/journal", "runtime/internal/store", "runtime/internal/maintenance/statefolder"}, nil},
	{"runtime/internal/maintenance/retention", []string{"internal/share", "sentinels", "runtime/maintenance", "runtime/internal/journal", "runtime/internal/store"}, nil},
	{"runtime/internal/maintenance/statefolder", []string{"sdk/abi", "runtime/maintenance", "runtime/internal/store", "runtime/internal/subprocess"}, nil},
	{"runtime/internal/pluginset", []string{"sentinels", "runtime/internal/failure", "sdk/abi", "sdk/role", "runtime/external", "runtime/plugin", "runtime/internal/store", "runtime/internal/wasm"}, nil}, // keeps modules, and their code in the store
	{"runtime/revision", []string{"sentinels"}, nil},
	{"runtime/trigger", []string{"sentinels", "triggers"}, nil},
	{"runtime/internal/definition", []string{"internal/fairqueue", "sentinels", "runtime/internal/failure", "sdk/abi", "runtime/revision", "runtime/external", "runtime/internal/store"}, nil},
	{"runtime/internal/dispatch", []string{"sentinels", "runtime/internal/failure", "runtime/internal/eventlog", "runtime/internal/rate", "triggers", "sdk/abi", "runtime/trigger", "runtime/internal/redact", "runtime/internal/store"}, nil}, // keeps outcomes and queues in the store
	{"runtime/internal/document", []string{"internal/fairqueue", "sentinels", "runtime/internal/failure", "sdk/abi", "runtime/internal/store"}, nil},
	{"runtime/internal/rate", nil, nil},
	{"runtime/internal/eventlog", []string{"sentinels", "sdk/abi", "runtime/internal/rate", "runtime/internal/redact", "runtime/internal/store"}, nil},
	{"runtime/internal/failure", []string{"sdk/abi"}, nil},
	{"runtime/internal/journal", []string{"sentinels", "sdk/abi", "runtime/run"}, nil},
	{"runtime/internal/budget", []string{"sentinels", "sdk/abi", "runtime/run"}, nil}, // limit extensions
	{"runtime/external", []string{"sentinels", "runtime/plugin", "runtime/internal/document"}, nil},
	{"runtime/internal/redact", []string{"sdk/abi", "runtime/internal/journal"}, nil},
	{"runtime/internal/values", []string{"runtime/internal/history", "runtime/internal/journal", "runtime/internal/redact"}, nil},
	{"runtime/internal/execution/step", []string{
		"sentinels", "runtime/internal/failure", "sentinels/reference", strictJSON, "sdk/abi", "sdk/role", "runtime/external", "runtime/plugin", "runtime/retry", "runtime/revision", "runtime/run",
		"runtime/internal/capacity", "runtime/internal/clock", "runtime/internal/cond", "runtime/internal/document", "runtime/internal/eventlog", "runtime/internal/history",
		"runtime/internal/journal", "runtime/internal/openfiles", "runtime/internal/pluginset", "runtime/internal/redact", "runtime/internal/store", "runtime/internal/values",
		"runtime/internal/wasm",
	}, nil},
	{"runtime/internal/execution", []string{"internal/fairqueue",
		"sentinels", "runtime/internal/failure", "sentinels/reference", strictJSON, "sdk/abi", "runtime/external", "runtime/revision", "runtime/run", "runtime/trace",
		"runtime/internal/budget", "runtime/internal/clock", "runtime/internal/definition", "runtime/internal/eventlog", "runtime/internal/execution/step",
		"runtime/internal/history", "runtime/internal/journal", "runtime/internal/maintenance/health", "runtime/internal/maintenance/retention", "runtime/internal/pluginset",
		"runtime/internal/runindex", "runtime/internal/store", "runtime/internal/values",
	}, []string{"github.com/google/uuid"}},
	{"runtime/internal/capacity", nil, nil},
	{"runtime/internal/clock", nil, nil},
	{"runtime/internal/runindex", []string{"sentinels", "runtime/run", "runtime/internal/store"}, nil},
	{"runtime/internal/**", []string{"sentinels", "sdk/abi"}, nil},
	{"runtime/guest", []string{"runtime/internal/subprocess", "runtime/internal/wasm", "sdk/abi", "sdk/abitest"}, nil}, // the kit judges through it
	{"runtime", []string{"sentinels", "sentinels/reference", "triggers", "sdk/abi", "sdk/role", "runtime/retry", "runtime/external", "runtime/plugin", "runtime/revision", "runtime/run", "runtime/trace", "runtime/trigger", "runtime/maintenance", "runtime/internal/**"}, nil},
	{"host/command", []string{"internal/boundedregexp", "host/internal/rootfs", "host/internal/termtext", "host/principal", "sentinels", "sentinels/glob", "sentinels/reference", "sdk/abi"}, []string{"github.com/santhosh-tekuri/jsonschema/v6", "github.com/google/jsonschema-go", "golang.org/x/text"}},
	{"host/command/sentinel", []string{"host/command", "host/command/code", "host/internal/reffile", "host/internal/rootfs", "host/internal/trust", "sentinels", "sdk/abi", "runtime", "runtime/plugin"}, nil}, // it steers the engine, nothing else, and reads files as code does
	{"host/ticket", []string{"sentinels", "sdk/abi", "sdk/role", "runtime", "runtime/retry", "runtime/revision"}, nil},                                                                                         // its tickets are documents of the engine
	{"host/ticket/learning", []string{"sentinels", "sentinels/glob", "sdk/abi", "runtime", "runtime/retry", "host/ticket", "host/internal/termtext"}, nil},
	{"host/command/ticket", []string{"host/command", "host/ticket", "host/ticket/learning", "sdk/abi"}, nil},
	{"host/confine", []string{"host/internal/pipes"}, []string{"github.com/landlock-lsm/go-landlock", "golang.org/x/net", "golang.org/x/sys", "kernel.org/pub/linux/libs/security/libcap/psx"}}, // it is initialised before each command
	{"host/verify", []string{"internal/boundedregexp", "host/ticket", "host/confine", "host/internal/gitexec", "host/internal/gitlfs", "host/internal/gitsource", "host/internal/peer", "host/internal/trash", "sdk/abi"}, nil},
	{"host/checkpoint", []string{"internal/fairqueue", "host/internal/atomicfile", "host/internal/gitexec", "internal/share", "host/internal/rootfs", "host/internal/trash", "sdk/abi"}, []string{"golang.org/x/sys"}}, // walks and clones
	{"host/command/checkpoint", []string{"host/command", "host/checkpoint", "runtime", "sentinels", "sdk/abi"}, nil},                                                                                                   // it looks whether a run is active
	{"host/internal/fixturetest", nil, nil},
	{"host/internal/gitexec/gitexectest", nil, nil},
	{"host/internal/gitexec", []string{"host/internal/pipes", "host/internal/termtext", "sdk/abi"}, nil},
	{"host/internal/gitlfs", []string{"host/internal/gitexec", "sdk/abi"}, nil},
	{"host/worktree", []string{"host/internal/atomicfile", "host/internal/gitexec", "host/internal/gitlfs", "host/internal/gitsource", "host/internal/trash", "sdk/abi"}, nil},
	{"host/internal/gitsource", []string{"host/internal/endpoint", "host/internal/gitexec", "host/internal/trash", "sdk/abi"}, nil},
	{"host/forge", []string{"host/internal/endpoint", "sentinels", "sdk/abi"}, nil},
	{"host/notify", []string{"host/internal/endpoint", "host/internal/pipes", "host/internal/termtext", "triggers/webhook", "sdk/abi"}, []string{"github.com/wneessen/go-mail"}}, // it signs as webhooks are checked
	{"host/command/notify", []string{"host/command", "host/notify", "sentinels"}, nil},
	{"host/command/forge", []string{"host/command", "host/forge", "sdk/abi"}, nil},
	{"host/command/worktree", []string{"host/command", "host/worktree", "sdk/abi"}, nil},
	{"host/principal", []string{"sdk/abi"}, nil},
	{"host/audit", []string{"host/logfile"}, nil},
	{"host/logfile", []string{"host/internal/atomicfile", "internal/share"}, nil},
	{"host/command/audit", []string{"host/command", "host/audit", "sdk/abi"}, nil},
	{"host/command/inbox", []string{"host/command", "host/ticket", "runtime", "sentinels", "sdk/abi"}, nil}, // it joins what waits
	{"host/command/verify", []string{"host/command", "host/ticket", "host/verify", "sdk/abi"}, nil},
	{"host/validation", []string{"host/command", "sentinels", "sentinels/reference", "sdk/abi"}, nil}, // what definitions name is commands first
	{"host/internal/atomicfile", nil, nil},
	{"host/internal/termtext", nil, nil},
	{"internal/share", nil, nil},
	{"host/internal/trust", []string{"host/internal/termtext", "host/internal/trust/content", "sdk/abi"}, nil},
	{"host/internal/trust/content", []string{"host/internal/atomicfile", "host/internal/gitexec", "host/internal/rootfs", "host/internal/trash", "sentinels", "sentinels/strictjson", "sdk/abi"}, nil},                                // which environment files a definition names
	{"host/plugin/grant", []string{"host/internal/trust", "host/internal/atomicfile", "sdk/abi", "runtime", "runtime/plugin"}, nil},                                                                                                   // it is the engine's operator
	{"host/plugin", []string{"host/command", "host/plugin/grant", "sentinels", "sdk/abi", "runtime", "runtime/plugin"}, nil},                                                                                                          // likewise
	{"host/serve", []string{"host", "host/*", "host/command/*", "host/internal/*", "host/ops/*", "host/plugin/bundle/lock", "runtime", "runtime/retry", "runtime/plugin", "triggers", "triggers/files", "sentinels", "sdk/abi"}, nil}, // it puts them together
	{"host/ops/repair", []string{"host/internal/termtext", "sentinels", "sdk/abi", "runtime"}, nil},                                                                                                                                   // the store is the engine's
	{"host/ops/backup", []string{"host/internal/atomicfile", "sdk/abi", "runtime"}, nil},                                                                                                                                              // it copies the state folder
	{"host/ops/doctor", []string{"host/internal/trust", "sentinels", "sdk/abi", "runtime"}, nil},                                                                                                                                      // and so is the state folder that it reports on
	{"host/ops/bench", []string{"host", "host/**", "plugins", "runtime", "runtime/plugin", "sentinels", "sdk/abi"}, []string{"golang.org/x/sys"}},
	{"host/foldersync", []string{"host/internal/reffile", "host/internal/trust", "runtime", "runtime/plugin", "triggers/files", "sentinels", "sentinels/glob", "sdk/abi"}, nil},
	{"host/plugin/bundle/lock", []string{"host/internal/atomicfile", "sdk/abi"}, []string{"golang.org/x/sys"}}, // the host checks by it, and links no more of how plugins travel
	{"host/plugin/bundle/sign", []string{"sdk/abi"}, []string{"aead.dev/minisign"}},
	{"host/plugin/bundle/wire", []string{"host/internal/endpoint", "sdk/abi"}, nil},
	{"host/plugin/bundle/oci", []string{"host/plugin/bundle/wire", "sdk/abi"}, []string{"oras.land/oras-go/v2", "github.com/opencontainers/image-spec", "github.com/opencontainers/go-digest"}},
	{"host/plugin/bundle/oci/ocitest", nil, nil},
	{"host/plugin/bundle", []string{"host/plugin/bundle/*", "host/internal/atomicfile", "runtime/guest", "sdk/abi"}, nil},
	{"host/internal/endpoint", nil, nil},
	{"host/internal/httpproblem", []string{"sdk/abi"}, nil},
	{"host/internal/obeyed", []string{"host/internal/trash"}, []string{"golang.org/x/sys"}},
	{"host/internal/reffile", []string{"host/internal/rootfs", "sentinels"}, nil},
	{"host/internal/pipes", nil, []string{"golang.org/x/sys"}},
	{"host/internal/namespacetest", nil, []string{"golang.org/x/sys"}},                                                       // of tests alone
	{"host/internal/peer", []string{"host/command/shell/supervise", "host/internal/endpoint"}, []string{"golang.org/x/sys"}}, // it reads the table of processes as that does
	{"host/internal/trash", []string{textCut}, []string{"golang.org/x/sys"}},
	{"host/control", []string{"host/internal/httpproblem", "host/internal/peer", "sdk/abi", "sentinels"}, []string{"golang.org/x/sys"}},
	{"host/api", []string{"internal/fairqueue", "host/principal", "host/internal/atomicfile", "host/command", "host/internal/httpproblem", "host/internal/peer", "host/internal/trust", "sentinels", "sdk/abi", "triggers"}, nil}, // triggers: what a webhook hands in and gets back
	{"host/client", []string{"host/principal", "host/control", "host/internal/httpproblem", "runtime/run", "sentinels", "sdk/abi"}, []string{"github.com/coder/websocket"}},                                                       // owner: the way to the socket
	{"host/process", []string{"host/redact", "host/principal", "host", "host/api", "host/client", "host/command", "host/control", "host/livefeed", "host/internal/*", "runtime", "sentinels", "sdk/abi"}, nil},
	{"host/cli/output", []string{"host/internal/termtext", "sentinels"}, nil},
	{"host/cli/app", []string{"host/principal", "host", "host/client", "host/command", "host/config", "host/control", "host/process", "host/internal/*", "host/internal/trust/content", "internal/linediff", "host/cli/output", "runtime", "runtime/plugin", "runtime/trace", "triggers/standard", "sentinels", "sentinels/strictjson", "sdk/abi"}, []string{"github.com/spf13/cobra", "github.com/spf13/pflag"}},
	{"host/cli/run", []string{"host", "host/logfile", "internal/textcut", "runtime/trace", "host/client", "host/command", "host/process", "host/internal/*", "host/cli/app", "host/cli/output", "runtime", "runtime/plugin", "sentinels", "sentinels/strictjson", "sdk/abi"}, cobra},
	{"host/cli/definitions", []string{"host/internal/*", "host/cli/app", "host/cli/output", "runtime", "triggers/standard", "sentinels", "sentinels/continuum", "sdk/abi"}, cobra},
	{"host/cli/inspect", []string{"host/audit", "host/client", "host/internal/*", "host/internal/trust/content", "host/cli/app", "host/cli/output", "runtime", "runtime/retry", "triggers/standard", "sentinels", "sdk/abi"}, cobra},
	{"host/cli/plugins", []string{"host", "host/config", "host/plugin", "host/plugin/**", "host/internal/*", "host/cli/app", "host/cli/output", "runtime", "runtime/plugin", "runtime/guest", "sdk/**", "sentinels"}, cobra},
	{"host/cli/operations", []string{"host", "host/*", "host/plugin/grant", "host/ops/*", "host/llm/**", "host/internal/*", "host/internal/trust/content", "host/cli/app", "host/cli/output", "runtime", "sentinels", "sdk/abi"}, []string{"github.com/spf13/cobra", "golang.org/x/sys", "github.com/lmittmann/tint"}},
	{"host/cli/help", []string{"host", "host/command", "host/command/shell", "host/client", "host/internal/*", "host/cli/app", "host/cli/output", "runtime", "runtime/retry", "sentinels", "sdk/abi"}, cobra},
	{"host/cli/tickets", []string{"host/internal/termtext", "host/cli/app", "host/cli/output"}, cobra},
	{"host/cli/clitest", []string{"host/cli", "host/cli/app", "host/client", "sentinels", "sdk/abi"}, nil},
	{"host/cli", []string{"host/ops/bench", "host/principal", "host/internal/procenv", "host/cli/*"}, []string{"github.com/spf13/cobra", "golang.org/x/term"}},
	{"host/cmd/**", []string{"host/cli", "runtime"}, nil},
	{"host/redact", nil, nil}, // what others write goes through it
	{"host/llm/openai", []string{"host/llm/wire", "sentinels"}, nil},
	{"host/llm/anthropic", []string{"host/llm/wire", "sentinels"}, nil},
	{"host/llm/steptype", []string{"host/llm/wire", "sdk/abi", "sdk/role"}, nil},
	{"host/llm/**", []string{"host/llm", "host/redact", "host/llm/**", "host/internal/termtext", "sentinels", "sdk/abi"}, nil},
	{"host/llm", []string{"host/llm/**", "host/redact", "sentinels", "sdk/abi"}, []string{"golang.org/x/net"}},
	{"host/command/http", []string{"host/command", "host/internal/endpoint", "host/plugin/egress", "internal/textcut", "plugins/http/fields", "sentinels", "sentinels/reference", "sentinels/strictjson", "sdk/abi"}, nil},                                                     // a client of egress
	{"host/config", []string{"host/confine", "host/plugin/egress", "host/internal/endpoint", "host/internal/trust", "host/internal/atomicfile", "host/llm", "host/llm/providers", "host/notify", "host/secret", "runtime/run", "sentinels", "sentinels/glob", "sdk/abi"}, nil}, // what it settles is described there
	{"host/command/shell/supervise", nil, nil}, // what it imports is initialised before each command
	{"host/command/shell", []string{"internal/boundedregexp", "host/command", "host/principal", "host/internal/endpoint", "host/internal/pipes", "host/internal/rootfs", "internal/share", "host/internal/termtext", "host/command/shell/supervise", "host/redact", "sentinels", "sdk/abi", "sdk/role"}, []string{"golang.org/x/sys"}},
	{"host/internal/rootfs", []string{"sdk/abi"}, nil},
	{"host/internal/filewalk", []string{"host/internal/rootfs", "sdk/abi", "sentinels/glob"}, nil},
	{"host/plugin/files", []string{"host/command", "host/internal/rootfs", "host/plugin/hostcall", "sdk/abi"}, nil}, // command: which files steer tools
	{"host/command/code", []string{"internal/boundedregexp", "host/command", "host/internal/filewalk", "host/internal/rootfs", "host/redact", "internal/linediff", "sentinels/glob", "sdk/abi"}, []string{"golang.org/x/text"}},
	{"host/internal/codeindex", []string{"host/internal/filewalk", "host/internal/gitexec", "host/internal/rootfs"}, []string{"modernc.org/sqlite"}},
	{"host/command/rag", []string{"host/command", "host/internal/codeindex", "host/internal/filewalk", "host/internal/gitexec", "host/internal/rootfs", "sentinels", "sentinels/glob", "sdk/abi"}, nil},
	{"host/command/git", []string{"host/command", "host/internal/gitexec", "host/internal/gitlfs", "host/internal/gitsource", "host/internal/rootfs", "sentinels", "sdk/abi"}, []string{"golang.org/x/sys"}},
	{"host/ops/metrics", []string{"runtime", "runtime/plugin", "sentinels"}, []string{"github.com/prometheus/client_golang"}},                                                 // it observes the engine
	{"host/livefeed", []string{"host/principal", "runtime", "runtime/plugin", "sentinels", "sdk/abi"}, []string{"github.com/coder/websocket"}},                                // it observes the engine
	{"host/ops/tracing", []string{"runtime", "sentinels", "sdk/abi"}, []string{"go.opentelemetry.io/otel", "go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/otel/trace"}}, // likewise
	{"host/internal/sdnotify", nil, nil},
	{"host/plugin/plugintest", []string{"host/command", "runtime/guest", "sentinels", "sdk/abi", "sdk/sdktest"}, nil}, // a step without an engine
	{"host/plugin/author", []string{"host/plugin/plugintest", "runtime/guest", "sdk/toolchain", "sdk/abi", "sdk/sdktest"}, nil},
	{"host/ops/packaging", []string{"sdk/abi"}, nil},
	{"host/internal/procenv", nil, nil},
	{"host/secret", []string{"host/internal/atomicfile", "host/internal/trust", "sdk/abi"}, []string{"filippo.io/age"}},
	{"host/plugin/hostcall", nil, nil},
	{"host/plugin/egress", []string{"host/internal/endpoint", "host/plugin/hostcall", "sdk/abi"}, []string{"golang.org/x/net", "golang.org/x/text"}},
	{"host/command/**", []string{"host/command", "sentinels", "sdk/abi", "runtime/retry"}, nil},
	{"host/internal/envfile", []string{"sdk/abi", "sentinels"}, nil},
	{"host/internal/**", []string{"sdk/abi"}, nil},
	{"host/*", []string{"host/command", "sentinels", "sdk/abi", "runtime/retry"}, nil},
	{"host", []string{"**"}, nil},
	{"examples", nil, nil},
	{"examples/internal/**", []string{"host", "host/cli", "host/llm/cassette", "host/plugin/plugintest", "runtime", "runtime/plugin", "runtime/guest", "sdk/abi", "sdk/sdktest", "sdk/toolchain", "sdk/toolchain/toolchaintest", "sentinels"}, []string{"github.com/google/go-cmp"}}, // what the lessons' tests share
	{"examples/**", []string{"host", "host/client", "host/command", "host/plugin/plugintest", "host/serve", "plugins", "runtime", "runtime/plugin", "runtime/guest", "sdk", "sdk/abi", "sdk/sdktest", "sentinels", "triggers"}, nil},
}

func fits(pattern, pkg string) bool {
	if pattern == "**" || pattern == pkg {
		return true
	}
	if prefix, ok := strings.CutSuffix(pattern, "/**"); ok {
		return strings.HasPrefix(pkg, prefix+"/")
	}
	ok, _ := path.Match(pattern, pkg)
	return ok
}

type listed struct {
	ImportPath string
	Imports    []string
	Standard   bool
	Module     *struct{ Path string }
}

func packages(t *testing.T) map[string]listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", "-json=ImportPath,Imports,Standard,Module", module+"...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	all := map[string]listed{}
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var p listed
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		all[p.ImportPath] = p
	}
	return all
}

// TestWhoMayImportWhom holds every package to its layer.
func TestWhoMayImportWhom(t *testing.T) {
	all := packages(t)
	users := map[string][]string{} // of a third-party module
	for name, p := range all {
		pkg, ok := strings.CutPrefix(name, module)
		if !ok {
			continue
		}
		i := slices.IndexFunc(layers, func(l layer) bool { return fits(l.pattern, pkg) })
		if i < 0 {
			t.Errorf("package %s is in no layer", pkg)
			continue
		}
		for _, imp := range p.Imports {
			if own, ok := strings.CutPrefix(imp, module); ok {
				if slices.Contains(everywhere, own) && !fits("plugins/**", pkg) && !fits("sdk/**", pkg) {
					continue
				}
				if !slices.ContainsFunc(layers[i].own, func(pattern string) bool { return fits(pattern, own) }) {
					t.Errorf("%s imports %s, which its layer %q may not", pkg, own, layers[i].pattern)
				}
				continue
			}
			dep := all[imp]
			if dep.Standard || dep.Module == nil {
				continue
			}
			if !slices.Contains(layers[i].others, dep.Module.Path) {
				t.Errorf("%s imports %s of %s, which its layer %q may not", pkg, imp, dep.Module.Path, layers[i].pattern)
			}
			if !slices.Contains(users[dep.Module.Path], pkg) {
				users[dep.Module.Path] = append(users[dep.Module.Path], pkg)
			}
		}
	}
	for dep, pkgs := range users {
		if shared[dep] == "" && len(pkgs) > 1 {
			t.Errorf("%s is imported by %v; a third-party module has one importing package", dep, pkgs)
		}
	}
}

// shared are the modules that more than one package may import, each with the
// reason.
var shared = map[string]string{
	"golang.org/x/sys":                         "system calls, an extension of the standard library",
	"golang.org/x/net":                         "the bytecode of system call filters in host/confine, the names of hosts in host/plugin/egress, and the variables of proxies in host/llm",
	"golang.org/x/text":                        "likewise, for the schema library's messages, the normal form of host names, and letters that look the same in host/command/code",
	"github.com/santhosh-tekuri/jsonschema/v6": "definitions and command parameters are both held to schemas, and neither package may import the other",
	"github.com/google/go-cmp":                 "test support, the conformance kit's too",
	"github.com/coder/websocket":               "the two ends of the live feed: host/livefeed serves it, host/client follows it",
	"github.com/spf13/cobra":                   "the packages of verbs, below host/cli",
	"github.com/spf13/pflag":                   "part of cobra's API",
}

// mayCompile are the files that may compile a pattern which is no constant.
var mayCompile = map[string]string{
	"internal/boundedregexp/boundedregexp.go": "its purpose",
	"internal/lazyregexp/lazyregexp.go":       "its patterns are constants",
	"host/command/validate.go":                "within the limit of boundedregexp, as a schema library wants it",
	"sentinels/internal/schemacost/size.go":   "likewise",
	"host/llm/llmtest/check.go":               "of the data of the package, for tests",
	"host/cli/plugins/cases.go":               "a flag of the command line, in its own process",
}

// TestPatternsAreBounded keeps patterns of others, for which the matcher of package regexp
// can need hours, within the limits of boundedregexp.
func TestPatternsAreBounded(t *testing.T) {
	compile := regexp.MustCompile("\\bregexp\\.(Must)?Compile(POSIX)?\\([^`\"]|\\bregexp\\.Match(String|Reader)?\\(|syntax\\.Parse\\(")
	seen := map[string]bool{}
	for _, dir := range []string{"host", "internal", "runtime", "sentinels", "triggers"} {
		err := filepath.WalkDir(filepath.Join("..", dir), func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			text, err := os.ReadFile(name)
			if err != nil || !compile.Match(text) {
				return err
			}
			if name = strings.TrimPrefix(filepath.ToSlash(name), "../"); mayCompile[name] == "" {
				t.Errorf("%s compiles a pattern that is no constant: use internal/boundedregexp", name)
			}
			seen[name] = true
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range mayCompile {
		if !seen[name] {
			t.Errorf("%s compiles no pattern: remove it from mayCompile", name)
		}
	}
}

// TestEmbeddersDoNotLinkTheHost keeps what an embedder of the engine links free
// of servers, model SDKs and the command line.
func TestEmbeddersDoNotLinkTheHost(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", module+"runtime").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for _, dep := range strings.Fields(string(out)) {
		for _, never := range []string{module + "host", "github.com/spf13/cobra", "github.com/openai/", "github.com/anthropics/", "oras.land/", "aead.dev/"} {
			if strings.HasPrefix(dep, never) {
				t.Errorf("runtime links %s", dep)
			}
		}
	}
}

// osOpen are the files of packages that keep the state which open something else by package os.
var osOpen = map[string]string{
	"runtime/internal/store/sync.go":      "folders, and files that were read before",
	"host/command/shell/proc_linux.go":    "files of /proc",
	"host/command/shell/process_linux.go": "the null device",
	"host/control/socket_linux.go":        "a folder",
	"host/command/shell/process_unix.go":  "the null device",
}

// TestStateIsOpenedAsRegularFiles: a pipe in the place of a file of the state must not keep a host from
// starting and ending.
func TestStateIsOpenedAsRegularFiles(t *testing.T) {
	opens := regexp.MustCompile(`\bos\.(Open|OpenFile|ReadFile|WriteFile|Create)\(`)
	for _, dir := range []string{
		"runtime/internal/store", "runtime/internal/wasm/compilecache", "host/foldersync", "host/command/shell", "host/audit", "host/control",
	} {
		files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(dir), "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", dir, len(files), err)
		}
		for _, file := range files {
			name := dir + "/" + filepath.Base(file)
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if found := opens.Find(text); found != nil && osOpen[name] == "" && !strings.HasSuffix(name, "_test.go") {
				t.Errorf("%s has %s: want package regularfile", name, found)
			}
		}
	}
}
