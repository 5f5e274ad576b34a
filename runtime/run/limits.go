package run

import (
	"time"
)

// Limits bound what runs may use; each is named in the error that it causes.
type Limits struct {
	Runs             int           // runs executing at once; waiting ones do not count. Steps and effects of agents' and models' runs each count, and have half together. Default 200
	Children         int           // active child runs of a run, with those that its ended children started; further ones wait. Default 50
	Depth            int           // nesting depth of child sentinels. Default 8
	Steps            int           // step executions an iteration. Default 100,000
	Hops             int           // runs that a chain of events may pass through. Default 16
	EventBytes       int64         // names and data of the events that an iteration emits. Default 16 MiB
	Calls            int           // host calls of an attempt since its checkpoint. Default 10,000
	CallBytes        int64         // bytes of requests and results of host calls since the checkpoint. Default 256 MiB
	LogLines         int           // log lines of an attempt; further ones are dropped. Default 10,000
	LogBytes         int64         // bytes of log lines of an attempt; further ones are dropped. Default 256 KiB
	StoredBytes      int64         // bytes that an attempt may set in variables and checkpoints. Default 256 MiB
	StepTimeout      time.Duration // time limit of a step that has none, without waits. Default 30 minutes
	Memory           int64         // bytes of variables, guests and processes of a run without maxMemoryMb. Default: half of the machine's memory, 1 GiB where that is unknown
	AgentMemory      int64         // the same of a run whose definition a model or an agent wrote, within Memory. Default 1 GiB
	AgentRuns        int           // unfinished runs of an agent, or of all models; beyond it steps wait that start a child, and other starts are refused. Default 200
	AgentQuestions   int           // approvals that unfinished runs of an agent, or of all models, wait for; a further one fails its step. Default 200
	AgentStarts      int           // runs that the triggers of an agent's definitions, or of all models', start in a minute; a quarter of these at once. Default 120
	AgentEvents      int           // events that an agent, or all models, emit in a minute; a further one is refused. Default 600
	AgentBytes       int64         // bytes of variables, inputs and events that these runs were started with, and as many of kept revisions of definitions. Default 64 MiB
	AgentDefinitions int           // definitions of an agent, or of all models; all of them together may have four times as many. Default 500
	VariableMemory   int64         // bytes of variables of a run without maxMemoryMb, within Memory. Default 1 GiB
	GuestMemory      int64         // bytes of linear memory of a guest whose plugin was granted no other bound, within Memory; at most [plugin.MaxMemory]. Default 256 MiB
	Resident         int           // waiting guests kept in memory; negative keeps none. Default 64
	ResidentBytes    int64         // bytes of waiting guests kept in memory. Default 256 MiB
	ResidentFor      time.Duration // how long a waiting guest is kept in memory; one with a longer wait is unloaded at once. Default 30 s
	KeepIterations   int           // iterations of a run whose records are kept for the trace. Default 100
	KeepBytes        int64         // bytes of a run's journal. Default 64 MiB
	KeepRevisions    int           // revisions of a definition. Default 50
	KeepEvents       int           // events in the event log. Default 10,000
	KeepEventBytes   int64         // bytes of the event log; the newest event is always kept. Default 64 MiB
	Plugins          int           // live plugins that are not trusted; each takes 0.3 MB and its compiled code. Default 256
	PluginBytes      int64         // bytes of the files of these plugins; their machine code is up to four times as large. Default 256 MiB
	Crashes          int           // crashes at which a step was executing until it is quarantined; after one less it executes only in its turn. Default 3
}

// WithDefaults returns the limits with the defaults in place of zeros.
func (l Limits) WithDefaults() Limits {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def64 := func(v *int64, d int64) {
		if *v == 0 {
			*v = d
		}
	}
	def(&l.Runs, 200)
	def(&l.Children, 50)
	def(&l.Depth, 8)
	def(&l.Steps, 100_000)
	def(&l.Hops, 16)
	def64(&l.EventBytes, 16<<20)
	def(&l.Calls, 10_000)
	def64(&l.CallBytes, 256<<20)
	def(&l.LogLines, 10_000)
	def64(&l.LogBytes, 256<<10)
	def64(&l.StoredBytes, 256<<20)
	if l.StepTimeout == 0 {
		l.StepTimeout = 30 * time.Minute
	}
	if l.Memory == 0 {
		l.Memory = halfOfMachine()
	}
	def64(&l.AgentMemory, 1<<30)
	def(&l.AgentRuns, 200)
	def(&l.AgentQuestions, 200)
	def(&l.AgentStarts, 120)
	def(&l.AgentEvents, 600)
	def64(&l.AgentBytes, 64<<20)
	def(&l.AgentDefinitions, 500)
	def64(&l.VariableMemory, 1<<30)
	def64(&l.GuestMemory, 256<<20)
	def(&l.Resident, 64)
	def64(&l.ResidentBytes, 256<<20)
	if l.ResidentFor == 0 {
		l.ResidentFor = 30 * time.Second
	}
	def(&l.KeepIterations, 100)
	def64(&l.KeepBytes, 64<<20)
	def(&l.KeepRevisions, 50)
	def(&l.KeepEvents, 10_000)
	def64(&l.KeepEventBytes, 64<<20)
	def(&l.Plugins, 256)
	def64(&l.PluginBytes, 256<<20)
	def(&l.Crashes, 3)
	return l
}

// Suspected reports whether the next crash may quarantine the step. A suspected step
// executes only in its turn, so that the next crash identifies the step that caused it.
func (l *Limits) Suspected(c StepCrashes) bool { return c.Count >= max(1, l.Crashes-1) }

// Quarantined reports whether the step is quarantined: it was executing at too many
// crashes, and at all but one of them no other step can have been the cause.
func (l *Limits) Quarantined(c StepCrashes) bool {
	return c.Count >= l.Crashes && c.Alone >= max(1, l.Crashes-1)
}
