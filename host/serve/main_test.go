package serve_test

import (
	"os"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime"
)

func TestMain(m *testing.M) {
	runtime.ServeChild() // conditions and checks of the store run in a child of this program
	if len(os.Args) > 1 && os.Args[1] == visitor && visit != nil {
		visit(os.Args[2:])
		return
	}
	if len(os.Args) > 1 && os.Args[1] == serverProcess && serveAll != nil {
		serveAll(os.Args[2])
		return
	}
	m.Run()
}

// visitor is the first argument of the processes that tests start below steps.
const visitor = "visit-the-server"

// serverProcess is the first argument of a process that is a server.
const serverProcess = "serve-everything"

// serveAll is that process, nil where there is none.
var serveAll func(project string)

// visit is that process, nil where there is none.
var visit func(args []string)
