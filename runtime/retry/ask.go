package retry

import (
	"context"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/role"
)

// A Classifier knows errors that the table of this package does not, such as the error
// classifiers of plugins. ok is false if it does not know the error. It is safe for
// concurrent use. A nil Classifier knows nothing.
type Classifier func(ctx context.Context, f role.Failure) (c Classification, ok bool)

// Classify asks the classifier first, then the table of this package. source is one of the
// sources of [role.Failure]. An error that is permanent by its code stays so and is not
// asked about, since no category causes a retry of it.
//
// It may take seconds. Callers record the category, so that recovery and replay do not ask
// again.
func (ask Classifier) Classify(ctx context.Context, source string, err error) Classification {
	own := ClassifyError(err)
	if ask == nil || err == nil || own.Permanent {
		return own
	}
	f := role.Failure{Message: err.Error(), Source: source}
	if e := abi.As(err); e != nil {
		f.Code = e.Code
	}
	f.ExitCode = ExitCode(f.Message)
	f.Message = cut(f.Message)
	if c, ok := ask(ctx, f); ok {
		return c
	}
	return own
}

// cut shortens a message to what a classifier gets: its beginning and its end.
func cut(text string) string {
	const most, gap = role.MaxMessage, "\n...\n"
	if len(text) <= most {
		return text
	}
	half := (most - len(gap)) / 2
	return strings.ToValidUTF8(text[:half], "") + gap + strings.ToValidUTF8(text[len(text)-half:], "")
}

// exitText matches the end of a process in a message.
var exitText = lazyregexp.New(`(?i)\bexit(?:ed)?(?: with)?(?: exit)?[ _-]?(?:code|status)[ :=]+(\d{1,3})\b`)

// quotedText matches a shell line or a program in a message, which may name an exit code itself.
var quotedText = lazyregexp.New(`"(?:\\.|[^"\\\n])*"|` + "`[^`\n]*`")

// WithoutLine returns the message of a shell step from its exit code on, without the line, whose
// words say nothing about the failure. Other messages are returned as they are.
func WithoutLine(text string) string {
	line, isShell := strings.CutPrefix(text, "shell ")
	if !isShell || line == "" {
		return text
	}
	end := line[:1] + ": " // the line stands in the quotes that it begins with
	if i := strings.Index(line, end+"exit code "); i > 0 {
		return line[i+len(end):]
	}
	return text
}

// ExitCode returns the exit code that a message names outside of quotes, nil if it names none.
func ExitCode(text string) *int {
	text = text[:min(len(text), role.MaxMessage)]
	found := exitText.FindStringSubmatch(quotedText.ReplaceAllString(text, `""`))
	if found == nil {
		return nil
	}
	code, err := strconv.Atoi(found[1])
	if err != nil {
		return nil
	}
	return &code
}
