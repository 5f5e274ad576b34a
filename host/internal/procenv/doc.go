// Package procenv hides the environment of this process from other processes.
//
// Secrets often come in environment variables, and on Linux the environment a
// process was started with stays readable in /proc/PID/environ: a step's shell
// line reads it with `cat /proc/$PPID/environ`. [Hide] overwrites it there and
// makes the process not dumpable. The program itself goes on reading variables
// as before. [CloseInherited] does the same for open files.
package procenv
