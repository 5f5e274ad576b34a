package sentinels

// limits reports fields of safety that have no effect beside the others, the loop and the
// budget.
func (c *checker) limits(d *Definition, prefix string) {
	loop, once := d.Loop.Type, d.Loop.Type == "" || d.Loop.Type == LoopOnce
	if d.Safety.MaxIterations > 0 && once {
		c.warn(prefix+"safety.maxIterations", `add a "loop", or leave it out`,
			"maxIterations has no effect: without a loop there is one iteration")
	}
	// continuous and event loops complete at maxIterations.
	stops := d.Safety.MaxIterations > 0 && !once && loop != LoopContinuous && loop != LoopEvent
	if d.Safety.OnTimeout != "" && d.Safety.TimeoutMs == 0 && d.Budget == (Budget{}) && !stops {
		c.warn(prefix+"safety.onTimeout", `add "timeoutMs", or a "budget"`, "onTimeout has no effect: the run has no limit that it applies to")
	}
}

// output reports a parse whose value nothing gets: an id gives the whole output.
func (c *checker) output(s *Step, path string) {
	if s.Parse != "" && s.OutputTo == "" {
		c.warn(path+".parse", `add "outputTo", the variable that gets the value`, `parse has no effect without "outputTo"`)
	}
}
