package reference_test

import (
	"testing"

	"github.com/sentinel-runtime/sentinel/sentinels/reference"
)

func TestUnendedQuote(t *testing.T) {
	for line, want := range map[string]string{
		`echo 'x`: "'", `echo it's`: "'", `echo "a`: `"`, "echo `date": "`", `echo "$(echo 'x)"`: "'", `echo $'a`: "'",
		`echo 'x' "y" "it's"`: "", `echo it\'s \"`: "", `# it's`: "", "echo a # it's\necho b": "", `echo "${x#'}"`: "", `case x in a) echo "b";; esac`: "",
		"cat <<E\nit's\nE": "", "awk '{print \"$1\"}' f": "", `echo "a \" b"`: "", "echo $((1 + 2)) '(' \"$(echo \")\")\"": "",
	} {
		if got := reference.UnendedQuote(line); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
