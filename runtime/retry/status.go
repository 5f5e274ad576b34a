package retry

import (
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
)

// statusPatterns match an HTTP status from 400 to 599 in a context that identifies
// it: after "http", "status", a subject such as "server returned", or a URL, or
// before its reason phrase.
var statusPatterns = []*lazyregexp.Regexp{
	lazyregexp.New(`\bhttps?(?:/\d(?:\.\d)?)?(?:[ _-]?(?:error|status|response|code))*['"]?[\s:=(#]*([45]\d\d)\b`),
	lazyregexp.New(`\b(?:status(?:[ _-]?code)?|error[ _-]?code)['"]?(?: is| was| of)?\s*[:=(]?\s*([45]\d\d)\b`),
	lazyregexp.New(`\b(?:server|api|gateway|upstream|endpoint|service|host|backend|proxy|request|url)s? (?:returned|responded|answered|replied|failed with)(?: with| an?| the| status| code| http| error)*[ :(]+([45]\d\d)\b`),
	lazyregexp.New(`\bhttps?://[^\s"']+["']?(?: returned| responded| failed)?(?: with)?[: ]+([45]\d\d)\b`),
	lazyregexp.New(`\b([45]\d\d)[ :,-]+\(?(?:bad request|unauthori[sz]ed|payment required|forbidden|not found|method not allowed|not acceptable|request time-?out|conflict|gone|length required|precondition|payload too large|request entity|unsupported media|unprocessable|locked|too early|too many requests|internal server|internal error|not implemented|bad gateway|service unavailable|gateway time-?out)\b`),
}

// exitBefore matches the words before the exit status of a process, which is not
// an HTTP status.
var exitBefore = lazyregexp.New(`\b(?:exit(?:ed|s)?|process|signal|returncode)(?: with| code| status|ed)*\s*$`)

// classifyStatus classifies the first HTTP status in a text, which is lower case.
func classifyStatus(text string) (c Classification, ok bool) {
	first, status := len(text), 0
	for _, p := range statusPatterns {
		for _, at := range p.FindAllStringSubmatchIndex(text, -1) {
			if at[2] >= first {
				break
			}
			start := max(0, at[0]-40) // exitBefore needs only the preceding words
			if exitBefore.MatchString(strings.TrimRight(text[start:at[0]], " :")) {
				continue
			}
			first = at[2]
			status, _ = strconv.Atoi(text[at[2]:at[3]])
			break
		}
	}
	if status == 0 {
		return Classification{}, false
	}
	return statusClass(status, confidenceStatus), true
}

// classifyAnswer classifies the status of an answer to a step of type http. Answers that blame the
// request will be the same next time, so that their kind has no retries of its own.
func classifyAnswer(text string) Classification {
	status, err := strconv.Atoi(text)
	if err != nil {
		return unclassified()
	}
	c := statusClass(status, 1)
	if status < 500 && c.Subcategory != "rate" && c.Category != Timeout {
		c.Subcategory = blamed
	}
	return c
}

// blamed is the subcategory of answers that blame the request.
const blamed = "request"

// statusClass returns the category of an HTTP status.
func statusClass(status int, confidence float64) Classification {
	c := Classification{Category: API, Confidence: confidence}
	switch {
	case status == 401, status == 403, status == 407:
		c.Subcategory = "auth"
	case status == 408:
		c.Category, c.Subcategory = Timeout, "general"
	case status == 425, status == 429:
		c.Subcategory = "rate"
	case status >= 500:
		c.Subcategory = "server_error"
	default:
		c.Subcategory = "http_" + strconv.Itoa(status)
	}
	return c
}
