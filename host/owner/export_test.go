package owner

var ReadProblem = readProblem
