package retry

import (
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
)

// A rule classifies the messages that match its pattern. The first matching rule
// decides, so the order matters. Patterns are matched against the text in lower
// case.
type rule struct {
	category Category
	sub      string
	pattern  *lazyregexp.Regexp
}

// words returns a rule whose alternatives match whole words.
func words(category Category, sub string, alternatives ...string) rule {
	return rule{category, sub, lazyregexp.New(`\b(?:` + strings.Join(alternatives, "|") + `)\b`)}
}

// text returns a rule whose alternatives have no added word boundaries.
func text(category Category, sub string, alternatives ...string) rule {
	return rule{category, sub, lazyregexp.New(strings.Join(alternatives, "|"))}
}

// specificRules are checked before HTTP statuses: rejected work, error names,
// texts of exceptions and parsers.
var specificRules = []rule{
	words(Security, "secrets", `(?:secrets?|credentials?|private keys?) (?:were |was |is |are )?(?:detected|found|leaked|exposed|committed)`,
		`hard-?coded (?:secrets?|credentials?|passwords?|api keys?|tokens?)`, `(?:leaked|exposed) (?:secrets?|credentials?|private keys?)`),
	words(Security, "vuln", `cve-\d{4}-\d{4,}`, `vulnerabilit(?:y|ies)`, `(?:sql|command|code) injection`),
	words(Security, "general", `security (?:check|scan|review|audit|gate|policy)s? (?:failed|violation|violated|rejected)`, `security violations?`),

	words(Verification, "sentinel", `sentinel (?:review(?:er)? )?(?:rejected|rejection|requested changes)`, `rejected by (?:the )?(?:sentinel|reviewer)`),
	words(Verification, "tests", `\d+ (?:tests?|specs?|suites?) (?:have |has )?(?:failed|failing)`, `(?:unit |integration )?tests? (?:suite |run )?(?:failed|failing)`,
		`test suites? failed`, `failing tests?`),
	words(Verification, "lint", `lint(?:er|ing)? (?:check |step )?(?:failed|errors?|problems?|issues?)`, `(?:eslint|golangci-lint|pylint|flake8)(?: found| reported|:)? .{0,40}(?:errors?|problems?|issues?)`),
	words(Verification, "general", `verification (?:has )?failed`, `failed verification`, `acceptance (?:check|criterion|criteria)s? (?:not met|failed)`),

	words(Timeout, "general", `e(?:socket)?timedout`, `esockettimedout`, `err_socket_connection_timeout`, `etime`),
	words(API, "network", `econn(?:refused|reset|aborted)`, `enotfound`, `eai_again`, `epipe`, `e(?:host|net)unreach`, `enet(?:down|reset)`, `err_network`, `und_err_socket`),
	words(Runtime, "permission", `eacces`, `eperm`, `erofs`),
	words(Runtime, "file", `enoent`, `eisdir`, `enotdir`, `eexist`, `enotempty`),
	words(Runtime, "general", `enospc`, `enomem`, `emfile`, `enfile`, `ebusy`, `eagain`, `edquot`),

	words(API, "rate", `rate[ _-]?limit(?:s|ed|ing|[ _-]?error|[ _-]?exceeded)?`, `too many requests`, `quota (?:has been )?exceeded`, `exceeded (?:your|the) (?:current )?quota`, `insufficient_quota`,
		`throttl(?:ed|ing)(?:exception)?`, `resource[ _]exhausted`, `(?:tokens|requests) per (?:min(?:ute)?|hour|day|second)`, `overloaded(?:_error)?`),
	words(Context, "tokens", `context[ _](?:length|window)(?:[ _]exceeded)?`, `maximum context`, `token limit`, `too many (?:input |prompt )?tokens`,
		`max(?:imum)?[ _](?:number of )?tokens`, `(?:prompt|input) is too long`, `exceeds? (?:the )?(?:maximum )?(?:number of )?tokens`),
	words(Context, "general", `context (?:is )?too (?:large|long)`, `context overflow`),

	// fetch of JavaScript reports network failures as a TypeError.
	words(API, "network", `fetch failed`, `failed to fetch`, `networkerror`),
	words(Logic, "undefined", `(?:properties|property)(?: '[^']*')? of undefined`, `undefined is not`, `is undefined`, `is not defined`, `undefined (?:variable|method|reference|name)`, `undefined:`, `nameerror`, `referenceerror`),
	words(Logic, "null", `(?:properties|property)(?: '[^']*')? of null`, `null ?pointer(?:exception)?`, `nil pointer`, `null is not`, `null reference`, `'?nonetype'? object`),
	words(Logic, "type", `typeerror`, `is not a (?:function|constructor)`, `is not (?:iterable|callable)`, `type mismatch`, `mismatched types`, `cannot convert`, `cannot use .{1,80} as`, `classcastexception`),
	words(Logic, "general", `assertionerror`, `assertion failed`, `(?:index|subscript) out of (?:range|bounds)`, `rangeerror`, `(?:division|divide) by zero`,
		`zerodivisionerror`, `maximum call stack`, `infinite loop`, `keyerror`, `indexerror`, `attributeerror`, `valueerror`, `deadlock`),

	text(Syntax, "json", `\b(?:in|of|invalid|malformed|truncated|parse|parsing|parsed|decode|decoding|unmarshal) json\b`, `\bjson(?:decodeerror| ?parse(?: error)?|\.parse)\b`,
		`\bjson:? (?:syntax|parse|parsing|decode|is (?:invalid|malformed|truncated))`, `\binvalid character .{1,12} (?:looking for|after|in)\b`, `\bunexpected end of json\b`),
	text(Syntax, "bracket", `\b(?:un(?:matched|balanced|closed|terminated)|mismatched|missing) (?:closing |opening )?(?:brackets?|braces?|paren(?:thesis|theses|s)?|quote|string)\b`,
		`\b(?:unexpected|missing|unmatched|expected)(?: token)? ['"\x60]?[()\[\]{}]`),
	words(Syntax, "token", `unexpected (?:token|identifier|string|number|symbol|keyword|character|end of (?:input|file))`, `invalid or unexpected token`, `illegal character`),
	words(Syntax, "general", `syntax ?errors?`, `pars(?:e|ing|er) errors?`, `parseerror`, `indentationerror`, `taberror`, `unexpected indent`),

	words(Runtime, "lease", `lease (?:has )?expired`, `lost (?:its |the )?lease`, `heartbeat (?:lost|missed|expired)`),
}

// generalRules are checked after HTTP statuses: phrases of sentences.
var generalRules = []rule{
	words(API, "server_error", `internal server error`, `bad gateway`, `service (?:is )?(?:temporarily )?unavailable`, `gateway time-?out`, `temporarily unavailable`, `server error`, `upstream connect error`),
	words(Timeout, "execution", `(?:execution|script|process|command|step|test|task|job|build)(?: has)? (?:timed? ?out|timeout)`, `exceeded (?:the |its )?(?:execution |step )?(?:time ?limit|timeout)`,
		`execution time(?: limit)? exceeded`, `time limit (?:was )?(?:exceeded|reached)`),
	text(Timeout, "general", `\btimed[ -]out\b`, `\btimeout(?:error|exception)\b`, `\bdeadline(?: has been)? ?exceeded\b`, `\btook too long\b`,
		`(?:^|[^\w.$=-])time-?out(?:$|[^\w=-])`),
	words(API, "network", `connection (?:was |has been )?(?:refused|reset|closed|aborted|lost|terminated|error)`, `socket hang up`, `no such host`, `(?:network|host) (?:is )?unreachable`,
		`no route to host`, `network (?:error|failure|is down)`, `getaddrinfo`, `name resolution`, `dns (?:lookup|error|resolution)`, `broken pipe`, `unexpected eof`,
		`could not (?:connect|resolve host)`, `tls handshake`, `certificate (?:has expired|verify failed|is not trusted)`, `stream (?:closed|reset)`),
	words(API, "auth", `unauthori[sz]ed`, `forbidden`, `unauthenticated`, `(?:invalid|incorrect|missing|expired) (?:api[ _-]?key|credentials?|token|x-api-key|password)`, `invalid_api_key`,
		`authentication(?:[ _-]?error| failed| required)`, `authenticationerror`, `authorization failed`, `token (?:has )?expired`, `(?:api[ _-]?key|credentials?) (?:is |are )?(?:invalid|missing|expired)`,
		`access denied`, `accessdenied`, `permission denied \(publickey`, `could not read username`),
	words(Runtime, "permission", `permission denied`, `operation not permitted`, `access is denied`, `permissionerror`, `read-only file ?system`, `not permitted`),
	words(Runtime, "file", `no such file`, `file (?:does not exist|not found|already exists)`, `filenotfounderror`, `(?:cannot|can't|could not) (?:find|open|read|write|create|stat) (?:the )?(?:file|module|directory|path)`,
		`module not found`, `modulenotfounderror`, `is a directory`, `not a directory`, `directory not (?:empty|found)`),
	words(Runtime, "general", `no space left`, `disk (?:is )?full`, `disk quota`, `out of memory`, `cannot allocate memory`, `heap (?:out of|limit)`, `too many open files`, `segmentation fault`, `sig(?:kill|term|segv|abrt|bus)`,
		`exit(?:ed)?(?: with)?(?: non-zero)?(?: exit)? (?:code|status) -?\d+`, `command (?:failed|not found)`, `(?:process|worker|plugin|guest) (?:crashed|died|exited|was killed|trapped)`,
		`core dumped`, `stack overflow`, `runtime error`, `runtimeerror`, `panic`, `text file busy`, `resource busy`, `spawn failed`),
	words(API, "general", `api (?:error|request failed|call failed|failure)`, `apierror`, `api_error`, `http (?:error|request failed)`, `request failed`),
	words(Logic, "general", `logic error`, `unexpected (?:result|value|behaviou?r)`, `invariant`),
}
