// Package process opens the engine in this process for as long as its caller needs
// it: for a command, or until the runs that it executes have ended.
//
// A [Process] implements [client.Engine] without a connection. Meanwhile it answers
// other processes of the same user on the control socket of the state folder, live
// feed included. From [Process.AcceptRuns] to the end of [Process.Finish] it also
// starts and resumes runs for them.
//
// Package serve has the process that stays: it watches a folder, fires triggers and
// listens on a port.
package process
