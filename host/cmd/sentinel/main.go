// Command sentinel is the host PROCESS as a program.
package main

import (
	"context"
	"os"

	"github.com/sentinel-runtime/sentinel/host/cli"
	"github.com/sentinel-runtime/sentinel/runtime"
)

func main() {
	runtime.ServeChild() // a helper process of ours ends here
	os.Exit(cli.Main(context.Background(), os.Args...))
}
