// Command skips lists why tests were skipped, from the events of go test -json on standard input: one
// line for each reason, with the number of tests and the first of them. Before them come the packages that failed
// although none of their tests did, with their last lines: a second run of failed tests executes nothing of these.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// place is what the testing package writes before the text of a test.
var place = regexp.MustCompile(`^\s*[\w.-]+\.go:\d+: `)

// lastLines is how many lines of a package are shown at most.
const lastLines = 30

type event struct{ Action, Package, Test, Output string }

func main() {
	said := map[string]string{} // the last text of a test
	tests := map[string][]string{}
	printed, failed := map[string][]string{}, map[string]bool{} // by package: its own last lines, whether a test failed
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		var e event
		if json.Unmarshal(in.Bytes(), &e) != nil {
			continue // go build prints lines of its own
		}
		if e.Test == "" {
			switch p := e.Package; {
			case e.Action == "output":
				lines := append(printed[p], e.Output)
				printed[p] = lines[max(0, len(lines)-lastLines):]
			case e.Action == "fail" && !failed[p]:
				fmt.Printf("=== %s failed, and none of its tests\n%s", p, strings.Join(printed[p], ""))
			}
			continue
		}
		failed[e.Package] = failed[e.Package] || e.Action == "fail"
		name := e.Package + "." + e.Test
		switch e.Action {
		case "run":
			delete(said, name)
		case "output":
			if at := place.FindString(e.Output); at != "" {
				said[name] = strings.TrimSpace(e.Output[len(at):])
			}
		case "skip":
			reason := said[name]
			if reason == "" {
				reason = "no reason"
			}
			if !slices.Contains(tests[reason], name) { // it may have run twice
				tests[reason] = append(tests[reason], name)
			}
		}
	}
	if err := in.Err(); err != nil {
		fmt.Fprintln(os.Stderr, "list skipped tests:", err)
		os.Exit(1)
	}
	if len(tests) == 0 {
		return
	}
	lines := make([]string, 0, len(tests))
	for reason, names := range tests {
		lines = append(lines, fmt.Sprintf("%s (%d: %s)", reason, len(names), names[0]))
	}
	slices.Sort(lines)
	fmt.Printf("=== not tested, by reason\n%s\n", strings.Join(lines, "\n"))
}
