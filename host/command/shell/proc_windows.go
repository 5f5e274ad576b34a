package shell

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
)

const limits = "only the started process of an execution is ended, its descendants are not, and nothing is found after a crash of the host"

var executableSuffixes = []string{"", ".exe", ".cmd", ".bat", ".com"}

func executable(fs.FileInfo) bool { return true }

func sessionAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

func terminate(p *os.Process) { _ = p.Kill() } // there is no signal that asks a process to end

func killGroup(p *os.Process) { _ = p.Kill() }

func exitOfCommand(cmd *exec.Cmd) (int, string) { return cmd.ProcessState.ExitCode(), "" }

var shellArgv = []string{"cmd.exe", "/C"}

func withArguments(line string, args []string) []string { return append([]string{line}, args...) }

func bootID() string { return "" }

func startTime(int) uint64 { return 0 }

func endLeftover(Record, string) (int, bool) { return 0, false }

func memoryOf([]int) []int64 { return nil }

func reapAdopted() {}

func becomeSubreaper() error { return errors.New("become subreaper: not on this system") }
